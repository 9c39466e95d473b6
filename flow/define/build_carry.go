package define

import (
	"time"

	"github.com/troupe-engine/troupe/flow"
)

// Who carries a node out, and how its units are.

// Service has workers carry it out that offer the service.
func (n *NodeBuilder) Service(name string) *NodeBuilder { n.n.Service = name; return n }

// Func has a function of the member carry it out.
func (n *NodeBuilder) Func(name string) *NodeBuilder {
	n.n.ExecType, n.n.Func = string(flow.ExecFunc), name
	return n
}

// Script has the member run a program.
func (n *NodeBuilder) Script(s flow.Script) *NodeBuilder {
	n.n.ExecType, n.n.Script = string(flow.ExecScript), &s
	return n
}

// Exec has the member run a program: of type process, python or container.
func (n *NodeBuilder) Exec(e ExecOf) *NodeBuilder { n.n.Exec = &e; return n }

// ExecType says how its jobs travel.
func (n *NodeBuilder) ExecType(t flow.ExecType) *NodeBuilder { n.n.ExecType = string(t); return n }

// Queue has its jobs wait until a worker asks for them.
func (n *NodeBuilder) Queue() *NodeBuilder {
	if !n.b.isDag() {
		return n.ExecType(flow.ExecQueue)
	}
	n.n.Route = flow.RouteQueue
	return n
}

// Direct leaves it to be completed through the API. Of dags.
func (n *NodeBuilder) Direct() *NodeBuilder { n.n.Route = flow.RouteDirect; return n }

// Deferred has an attempt wait for the jobs of other systems that its output names.
func (n *NodeBuilder) Deferred() *NodeBuilder { n.n.Deferred = true; return n }

// Labels are what a worker has to have.
func (n *NodeBuilder) Labels(labels ...string) *NodeBuilder { n.n.Labels = labels; return n }

// Weighted prefers the worker with the least load. Of graphs.
func (n *NodeBuilder) Weighted() *NodeBuilder { n.n.WeightedByLoad = true; return n }

// Visibility is how long a worker may hold a job of the queue without a sign of life.
func (n *NodeBuilder) Visibility(d time.Duration) *NodeBuilder {
	n.n.VisibilityMS = n.milliseconds(d, "the visibility")
	return n
}

// HeartbeatTimeout is how long a worker may be silent. Of dags.
func (n *NodeBuilder) HeartbeatTimeout(d time.Duration) *NodeBuilder {
	n.n.HeartbeatTimeout = writtenDuration(d)
	return n
}

// StartTimeout is how long a job may wait for a worker. Of dags.
func (n *NodeBuilder) StartTimeout(d time.Duration) *NodeBuilder {
	n.n.StartTimeout = writtenDuration(d)
	return n
}

// Branches are those of a parallel node, each carried out in its own way.
func (n *NodeBuilder) Branches(execs ...ExecSpec) *NodeBuilder { n.n.ParallelExecs = execs; return n }

// Items are those of a foreach, by Index, that are carried out differently.
func (n *NodeBuilder) Items(execs ...ExecSpec) *NodeBuilder { n.n.ForeachExecs = execs; return n }

// Children are those of a subflow, by Node, that are carried out differently.
func (n *NodeBuilder) Children(execs ...ExecSpec) *NodeBuilder { n.n.SubflowExecs = execs; return n }

// Concurrent has the units of a parallel or foreach node at work at once, no more than so many; 0 =
// all of them.
func (n *NodeBuilder) Concurrent(most int) *NodeBuilder {
	n.n.ParallelMode, n.n.MaxParallel = "concurrent", most
	return n
}

// Failures says what a failed unit or child means: fail_fast, collect_errors, continue,
// ignore_errors or retry. Of graphs.
func (n *NodeBuilder) Failures(strategy string) *NodeBuilder {
	n.n.FailureStrategy = strategy
	return n
}

// OnError says what its failure means where no edge leads on from it: OnErrorFail or OnErrorFollow.
// Of graphs.
func (n *NodeBuilder) OnError(word string) *NodeBuilder { n.n.OnError = word; return n }

// Retry tries so many times in all, with a pause in between.
func (n *NodeBuilder) Retry(attempts int, delay time.Duration) *NodeBuilder {
	n.n.Retry = &RetrySpec{MaxAttempts: attempts, Delay: writtenDuration(delay)}
	return n
}

// Backoff doubles the pause each time, up to a longest one, and leaves a part of it, 0 to 1, to
// chance. It belongs after Retry.
func (n *NodeBuilder) Backoff(longest time.Duration, jitter float64) *NodeBuilder {
	if n.n.Retry == nil {
		n.b.recordError("node %q: Backoff belongs after Retry", n.key)
		return n
	}
	n.n.Retry.Backoff, n.n.Retry.MaxDelay, n.n.Retry.Jitter = BackoffExponential, writtenDuration(longest), jitter
	return n
}

// Retries tries so many times after the first one, of a subflow so many times in all, with a pause
// in between: max_retries and wait_ms.
func (n *NodeBuilder) Retries(most int, pause time.Duration) *NodeBuilder {
	n.n.MaxRetries, n.n.WaitMS = most, n.milliseconds(pause, "the pause of Retries")
	return n
}

// Workers asks so many workers at most within one attempt, with a pause in between: max_attempts
// and attempt_delay_ms.
func (n *NodeBuilder) Workers(most int, pause time.Duration) *NodeBuilder {
	n.n.MaxAttempts, n.n.AttemptDelayMS = most, n.milliseconds(pause, "the pause of Workers")
	return n
}

// Timeout bounds each attempt; of a flow inside, all of it; of a wait, that.
func (n *NodeBuilder) Timeout(d time.Duration) *NodeBuilder {
	n.n.TimeoutMS = n.milliseconds(d, "the timeout")
	return n
}

// Delay has its units start later. Of dags.
func (n *NodeBuilder) Delay(d time.Duration) *NodeBuilder {
	n.n.StartDelay = writtenDuration(d)
	return n
}

// Compensate names the node that undoes the completed units of this one when the task fails or is
// canceled.
func (n *NodeBuilder) Compensate(by *NodeBuilder) *NodeBuilder {
	n.n.Compensate = n.b.keyOf(by, "the node that undoes %q", n.key)
	return n
}
