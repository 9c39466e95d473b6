package troupe

import (
	"context"
	"iter"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

type (
	// JobState is a job with its attempts.
	JobState = wire.Job
	// WaitingJob is a job in a queue.
	WaitingJob = wire.WaitingJob
	// Queue is the queue of one service with its length.
	Queue = wire.Queue
	// KnownWorker is a worker that has called lately.
	KnownWorker = wire.KnownWorker
	// Cluster holds the members and the shards that they own.
	Cluster = wire.Cluster
	// Shards holds the owner of each shard.
	Shards = wire.Shards
	// Member is one member of the cluster.
	Member = wire.Member
	// Info holds the version and the features of a server.
	Info = wire.Info
	// Overview sums up what runs, waits and fails.
	Overview = wire.Overview
	// FlowStats holds the statistics of one flow.
	FlowStats = wire.FlowStats
	// StatsSeries holds statistics over time.
	StatsSeries = wire.StatsSeries
)

// StatsOf says which statistics are meant.
type StatsOf = client.StatsOf

// Job reads a job, also long after it ended.
func (e *Engine) Job(ctx context.Context, id string) (*JobState, error) {
	return withTypedError(e.client.Job(ctx, id))
}

// Log reads what a job has written to its log.
func (e *Engine) Log(ctx context.Context, job string) (string, error) {
	log, err := e.client.Log(ctx, job)
	return log, toTypedError(err)
}

// LogQuery picks lines of a task's logs.
type LogQuery = client.LogQuery

// LogEntry is a line that one of a task's attempts has printed.
type LogEntry = wire.LogEntry

// Logs reads a page of what a task's attempts have printed. Its Next is the After of the next one.
func (e *Engine) Logs(ctx context.Context, task string, q LogQuery) (*Page[LogEntry], error) {
	return withTypedError(e.client.Logs(ctx, task, q))
}

// FollowLogs gives what a task's attempts print, as they do, and ends with the task.
func (e *Engine) FollowLogs(ctx context.Context, task string, q LogQuery) iter.Seq2[LogEntry, error] {
	return func(yield func(LogEntry, error) bool) {
		for line, err := range e.client.FollowLogs(ctx, task, q) {
			if !yield(line, toTypedError(err)) {
				return
			}
		}
	}
}

// Jobs lists the jobs in the queue, of some services or of all, the longest waiting first.
func (e *Engine) Jobs(ctx context.Context, p Paging, services ...string) (*Page[WaitingJob], error) {
	return withTypedError(e.client.Jobs(ctx, p, services...))
}

// Queues tells how long the queues are.
func (e *Engine) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := e.client.Queues(ctx)
	return queues, toTypedError(err)
}

// Workers lists the workers in order of their first registration.
func (e *Engine) Workers(ctx context.Context) ([]KnownWorker, error) {
	workers, err := e.client.Workers(ctx)
	return workers, toTypedError(err)
}

// Worker tells of one worker.
func (e *Engine) Worker(ctx context.Context, id string) (*KnownWorker, error) {
	return withTypedError(e.client.Worker(ctx, id))
}

// Overview tells at once how everything is.
func (e *Engine) Overview(ctx context.Context) (*Overview, error) {
	return withTypedError(e.client.Overview(ctx))
}

// FlowStats tells how the tasks of a flow, and its nodes, have gone.
func (e *Engine) FlowStats(ctx context.Context, flow string, of StatsOf) (*FlowStats, error) {
	return withTypedError(e.client.FlowStats(ctx, flow, of))
}

// StatsSeries tells how tasks, or a node, have gone from time to time.
func (e *Engine) StatsSeries(ctx context.Context, of StatsOf) (*StatsSeries, error) {
	return withTypedError(e.client.StatsSeries(ctx, of))
}

// Info tells which member this is.
func (e *Engine) Info(ctx context.Context) (*Info, error) { return withTypedError(e.client.Info(ctx)) }

// Members tells who is a member of the cluster.
func (e *Engine) Members(ctx context.Context) (*Cluster, error) {
	return withTypedError(e.client.Members(ctx))
}

// Shards tells who owns which shards; with a task, the one that it is in.
func (e *Engine) Shards(ctx context.Context, task string) (*Shards, error) {
	return withTypedError(e.client.Shards(ctx, task))
}

// Drain has a member own nothing, and Undrain have it take its part again.
func (e *Engine) Drain(ctx context.Context, member string) (*Member, error) {
	return withTypedError(e.client.Drain(ctx, member))
}

// Undrain has a member that was drained take its part again.
func (e *Engine) Undrain(ctx context.Context, member string) (*Member, error) {
	return withTypedError(e.client.Undrain(ctx, member))
}
