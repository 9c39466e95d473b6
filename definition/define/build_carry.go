package define

import (
	"time"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// Methods that define how a node and its units are carried out.

// Service lets workers that offer the service carry out the node.
func (n *NodeBuilder) Service(name string) *NodeBuilder { n.n.Service = name; return n }

// Func lets a function of the member carry out the node.
func (n *NodeBuilder) Func(name string) *NodeBuilder {
	n.n.ExecType, n.n.Func = string(flow.ExecFunc), name
	return n
}

// Script makes the member run a program.
func (n *NodeBuilder) Script(s flow.Script) *NodeBuilder {
	n.n.ExecType, n.n.Script = string(flow.ExecScript), &s
	return n
}

// Exec makes the member run a program of type process, python or container.
func (n *NodeBuilder) Exec(e definition.ExecOf) *NodeBuilder { n.n.Exec = &e; return n }

// ExecType sets how the jobs of the node are delivered.
func (n *NodeBuilder) ExecType(t flow.ExecType) *NodeBuilder { n.n.ExecType = string(t); return n }

// Queue makes the jobs of the node wait until a worker polls for them.
func (n *NodeBuilder) Queue() *NodeBuilder {
	if !n.b.isDag() {
		return n.ExecType(flow.ExecQueue)
	}
	n.n.Route = flow.RouteQueue
	return n
}

// Direct makes the units of the node complete through the API. For dags only.
func (n *NodeBuilder) Direct() *NodeBuilder { n.n.Route = flow.RouteDirect; return n }

// Deferred makes an attempt wait for the external jobs that the output of the node names.
func (n *NodeBuilder) Deferred() *NodeBuilder { n.n.Deferred = true; return n }

// Labels sets the labels that a worker must have.
func (n *NodeBuilder) Labels(labels ...string) *NodeBuilder { n.n.Labels = labels; return n }

// Weighted prefers the worker with the lowest load. For graphs only.
func (n *NodeBuilder) Weighted() *NodeBuilder { n.n.WeightedByLoad = true; return n }

// Visibility sets how long a worker may hold a job of a queue without a heartbeat.
func (n *NodeBuilder) Visibility(d time.Duration) *NodeBuilder {
	n.n.VisibilityMS = n.milliseconds(d, "the visibility")
	return n
}

// HeartbeatTimeout sets how long a worker may be silent. For dags only.
func (n *NodeBuilder) HeartbeatTimeout(d time.Duration) *NodeBuilder {
	n.n.HeartbeatTimeout = definition.DurationOf(d)
	return n
}

// StartTimeout sets how long a job may wait for a worker. For dags only.
func (n *NodeBuilder) StartTimeout(d time.Duration) *NodeBuilder {
	n.n.StartTimeout = definition.DurationOf(d)
	return n
}

// Branches sets the branches of a parallel node, each with its own way to be carried out.
func (n *NodeBuilder) Branches(execs ...definition.ExecSpec) *NodeBuilder {
	n.n.ParallelExecs = execs
	return n
}

// Items sets how some items of a foreach, given by Index, are carried out differently.
func (n *NodeBuilder) Items(execs ...definition.ExecSpec) *NodeBuilder {
	n.n.ForeachExecs = execs
	return n
}

// Children sets how some children of a subflow, given by Node, are carried out differently.
func (n *NodeBuilder) Children(execs ...definition.ExecSpec) *NodeBuilder {
	n.n.SubflowExecs = execs
	return n
}

// Concurrent makes the units of a parallel or foreach node run concurrently, up to the given
// number; 0 means all.
func (n *NodeBuilder) Concurrent(most int) *NodeBuilder {
	n.n.ParallelMode, n.n.MaxParallel = "concurrent", most
	return n
}

// Failures sets the effect of a failed unit or child: fail_fast, collect_errors, continue,
// ignore_errors or retry. For graphs only.
func (n *NodeBuilder) Failures(strategy string) *NodeBuilder {
	n.n.FailureStrategy = strategy
	return n
}

// OnError sets the effect of a failure of the node if no error edge handles the failure:
// OnErrorFail or OnErrorFollow. For graphs only.
func (n *NodeBuilder) OnError(word string) *NodeBuilder { n.n.OnError = word; return n }

// Retry sets the total number of attempts, and the delay between them.
func (n *NodeBuilder) Retry(attempts int, delay time.Duration) *NodeBuilder {
	n.n.Retry = &definition.RetrySpec{MaxAttempts: attempts, Delay: definition.DurationOf(delay)}
	return n
}

// Backoff doubles the delay after each attempt, up to a maximum. The random part of a delay is 0 to
// 1. Backoff must follow Retry.
func (n *NodeBuilder) Backoff(longest time.Duration, jitter float64) *NodeBuilder {
	if n.n.Retry == nil {
		n.b.recordError("node %q: Backoff belongs after Retry", n.key)
		return n
	}
	n.n.Retry.Backoff, n.n.Retry.MaxDelay, n.n.Retry.Jitter = definition.BackoffExponential, definition.DurationOf(longest), jitter
	return n
}

// WorkersPerAttempt limits the number of workers that one attempt calls, and sets the delay between
// these calls.
func (n *NodeBuilder) WorkersPerAttempt(most int, delay time.Duration) *NodeBuilder {
	n.n.WorkersPerAttempt, n.n.WorkerDelay = most, definition.DurationOf(delay)
	return n
}

// Timeout limits each attempt. For a nested flow it limits the whole flow, and for a wait the wait.
func (n *NodeBuilder) Timeout(d time.Duration) *NodeBuilder {
	n.n.TimeoutMS = n.milliseconds(d, "the timeout")
	return n
}

// Delay delays the start of the units of the node. For dags only.
func (n *NodeBuilder) Delay(d time.Duration) *NodeBuilder {
	n.n.StartDelay = definition.DurationOf(d)
	return n
}

// Compensate sets the node that undoes the completed units of this node when the task fails or is
// canceled.
func (n *NodeBuilder) Compensate(by *NodeBuilder) *NodeBuilder {
	n.n.Compensate = n.b.keyOf(by, "the node that undoes %q", n.key)
	return n
}
