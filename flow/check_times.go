package flow

import "math"

// What pgflow itself takes at least. Here both may be shorter.
const (
	leastPgflowDelay   = 1_000
	leastPgflowTimeout = 3_000
)

// retry checks how often and how far apart something is tried.
func (c *checker) retry(spec *RetrySpec, profile Profile, at *place) {
	if spec == nil {
		return
	}
	if spec.noAttempts {
		c.errorf(at.key("max_attempts"), "must be 1 at least: the first attempt is one of them")
	}
	c.count(spec.MaxAttempts, at.key("max_attempts"))
	c.duration(spec.Delay, at.key("delay"))
	c.duration(spec.MaxDelay, at.key("max_delay"))
	if profile == ProfilePgflow && !spec.Delay.IsZero() && spec.Delay.MS < leastPgflowDelay {
		c.warnf(at.key("delay"), "is less than pgflow itself takes, which is 1s at least")
	}
	switch spec.Backoff {
	case "", backoffFixed, backoffExponential:
	default:
		c.errorf(at.key("backoff"), "unknown word %.80q: write fixed or exponential", spec.Backoff)
	}
	if !(spec.Jitter >= 0 && spec.Jitter <= 1) || math.IsNaN(spec.Jitter) {
		c.errorf(at.key("jitter"), "must be between 0 and 1, is %g", spec.Jitter)
	}
}

// duration refuses a number where no profile says that numbers are seconds.
func (c *checker) duration(d Duration, at *place) {
	if d.seconds && !c.seconds {
		c.errorf(at, "a number has no unit here: write for example 30s or 250ms")
	}
}

// timeout checks the time an attempt may take; 0 is any.
func (c *checker) timeout(d Duration, profile Profile, at *place) {
	if profile == ProfilePgflow && d.MS > 0 && d.MS < leastPgflowTimeout {
		c.warnf(at, "is less than pgflow itself takes, which is 3s at least")
	}
	c.duration(d, at)
}
