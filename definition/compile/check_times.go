package compile

import (
	"math"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// Minimum values of pgflow itself. Here both may be lower.
const (
	leastPgflowDelay   = 1_000
	leastPgflowTimeout = 3_000
)

// checkRetry checks a retry specification.
func (c *checker) checkRetry(spec *definition.RetrySpec, profile flow.Profile, at *definition.Place) {
	if spec == nil {
		return
	}
	if spec.NoAttempts() {
		c.Errorf(at.Key("max_attempts"), "must be 1 at least: the first attempt is one of them")
	}
	if spec.MaxAttempts == 0 && !spec.NoAttempts() && profile != flow.ProfilePgflow {
		c.Errorf(at.Key("max_attempts"), "is missing: without it, nothing is retried")
	}
	c.checkCount(spec.MaxAttempts, at.Key("max_attempts"))
	c.checkDuration(spec.Delay, at.Key("delay"))
	c.checkDuration(spec.MaxDelay, at.Key("max_delay"))
	if profile == flow.ProfilePgflow && !spec.Delay.IsZero() && spec.Delay.MS < leastPgflowDelay {
		c.Warnf(at.Key("delay"), "is less than pgflow itself takes, which is 1s at least")
	}
	switch spec.Backoff {
	case "", definition.BackoffFixed, definition.BackoffExponential:
	default:
		c.Errorf(at.Key("backoff"), "unknown word %.80q: write fixed or exponential", spec.Backoff)
	}
	c.checkPauses(spec, profile, at)
	if !(spec.Jitter >= 0 && spec.Jitter <= 1) || math.IsNaN(spec.Jitter) {
		c.Errorf(at.Key("jitter"), "must be between 0 and 1, is %g", spec.Jitter)
	}
}

// checkPauses reports settings for the delays between attempts if there are no delays.
func (c fieldChecker) checkPauses(spec *definition.RetrySpec, profile flow.Profile, at *definition.Place) {
	if !spec.Delay.IsZero() || spec.Backoff == definition.BackoffExponential || profile == flow.ProfilePgflow {
		return
	}
	const how = "has no effect without a pause: write delay, or backoff: exponential"
	if spec.Jitter > 0 {
		c.Errorf(at.Key("jitter"), how)
	}
	if !spec.MaxDelay.IsZero() {
		c.Errorf(at.Key("max_delay"), how)
	}
}

// checkDuration reports a number if the profile does not allow numbers of seconds.
func (c *checker) checkDuration(d definition.Duration, at *definition.Place) {
	if d.InSeconds() && !c.allowsSeconds {
		c.Errorf(at, "a number has no unit here: write for example 30s or 250ms")
	}
}

// checkTimeout checks the timeout of an attempt; 0 means none.
func (c *checker) checkTimeout(d definition.Duration, profile flow.Profile, at *definition.Place) {
	if profile == flow.ProfilePgflow && d.MS > 0 && d.MS < leastPgflowTimeout {
		c.Warnf(at, "is less than pgflow itself takes, which is 3s at least")
	}
	c.checkDuration(d, at)
}
