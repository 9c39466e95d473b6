package flow

import (
	"cmp"
	"math"
)

// Words of retry.backoff.
const (
	backoffFixed       = "fixed"
	backoffExponential = "exponential"
)

// What pgflow itself takes at least. Here both may be shorter.
const (
	leastPgflowDelay   = 1_000
	leastPgflowTimeout = 3_000
)

// tries reads retry, of the node or the flow.
func (c *dagCompiler) tries(p *PlanNode, n *Node, at *place) {
	p.Retry = Retry{Units: true}
	spec := c.retrySpec(n.Retry, c.profile, at.key("retry"))
	if spec == nil || c.profile == ProfilePgflow {
		spec = spec.or(c.set.def.Retry)
	}
	if n.MaxRetries > 0 || n.WaitMS > 0 {
		p.Retry.Max, p.Retry.WaitMS = c.count(n.MaxRetries, at.key("max_retries")), c.milliseconds(n.WaitMS, at.key("wait_ms"))
		return
	}
	if spec != nil {
		p.Retry = spec.retry()
		if c.profile == ProfilePgflow && p.Retry.Exponential {
			p.Retry.WaitMS *= 2 // base × 2^(tries so far)
		}
	}
}

// or takes from another one what is not said.
func (r *RetrySpec) or(other *RetrySpec) *RetrySpec {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	return &RetrySpec{
		MaxAttempts: cmp.Or(r.MaxAttempts, other.MaxAttempts), Delay: cmp.Or(r.Delay, other.Delay), Backoff: cmp.Or(r.Backoff, other.Backoff),
		MaxDelay: cmp.Or(r.MaxDelay, other.MaxDelay), Jitter: cmp.Or(r.Jitter, other.Jitter),
	}
}

// retrySpec checks a retry and is what is right of it.
func (c *compiler) retrySpec(written *RetrySpec, profile Profile, at *place) *RetrySpec {
	if written == nil {
		return nil
	}
	spec := *written
	if spec.noAttempts {
		c.errorf(at.key("max_attempts"), "must be 1 at least: the first attempt is one of them")
	}
	spec.MaxAttempts = c.count(spec.MaxAttempts, at.key("max_attempts"))
	c.duration(spec.Delay, at.key("delay"))
	c.duration(spec.MaxDelay, at.key("max_delay"))
	if profile == ProfilePgflow && !spec.Delay.IsZero() && spec.Delay.MS < leastPgflowDelay {
		c.warnf(at.key("delay"), "is less than pgflow itself takes, which is 1s at least")
	}
	switch spec.Backoff {
	case "", backoffFixed, backoffExponential:
	default:
		c.errorf(at.key("backoff"), "unknown word %.80q: write fixed or exponential", spec.Backoff)
		spec.Backoff = ""
	}
	if !(spec.Jitter >= 0 && spec.Jitter <= 1) || math.IsNaN(spec.Jitter) {
		c.errorf(at.key("jitter"), "must be between 0 and 1, is %g", spec.Jitter)
		spec.Jitter = 0
	}
	return &spec
}

// retry is what a checked spec means.
func (r *RetrySpec) retry() Retry {
	t := Retry{Units: true, Max: max(r.MaxAttempts-1, 0), WaitMS: r.Delay.MS, MaxWaitMS: r.MaxDelay.MS, Jitter: r.Jitter,
		Exponential: r.Backoff == backoffExponential}
	if t.Exponential && r.Delay.IsZero() {
		t.WaitMS = 1_000
	}
	return t
}

// duration refuses a number where no profile says that numbers are seconds.
func (c *compiler) duration(d Duration, at *place) int64 {
	if d.seconds && !c.seconds {
		c.errorf(at, "a number has no unit here: write for example 30s or 250ms")
	}
	return d.MS
}

// timeout reads the time an attempt may take; 0 is any.
func (c *compiler) timeout(d Duration, profile Profile, at *place) int64 {
	if profile == ProfilePgflow && d.MS > 0 && d.MS < leastPgflowTimeout {
		c.warnf(at, "is less than pgflow itself takes, which is 3s at least")
	}
	return c.duration(d, at)
}

// times reads a node's deadlines.
func (c *dagCompiler) times(p *PlanNode, n *Node, at *place) {
	p.TimeoutMS = c.timeout(Duration{MS: c.milliseconds(n.TimeoutMS, at.key("timeout_ms"))}, c.profile, at.key("timeout_ms"))
	given := n.TimeoutMS > 0 || n.noTimeout || !n.Timeout.IsZero()
	if !n.Timeout.IsZero() {
		p.TimeoutMS = c.timeout(n.Timeout, c.profile, at.key("timeout"))
	}
	if !given && p.Exec.Type != ExecDirect && p.Kind != KindWaitEvent && p.Kind != KindApproval && p.Kind != KindTimer && p.Kind != KindSubflow {
		p.TimeoutMS = c.set.def.Timeout.MS
	}
	if c.profile == ProfilePgflow && p.Exec.Type == ExecQueue && p.TimeoutMS > 0 && p.Exec.HeartbeatMS == 0 {
		p.Exec.VisibilityMS = p.TimeoutMS + 2_000 // so that it is the timeout that ends the attempt
	}
	if s := p.Exec.Script; s != nil && s.TimeoutMS == 0 && p.TimeoutMS > 0 { // else scripts have a shorter one
		own := *s
		own.TimeoutMS = p.TimeoutMS
		p.Exec.Script = &own
	}
}
