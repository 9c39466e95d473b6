//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

const (
	tasks   = 300
	callers = 24 // each starts a task, follows it to its end, and continues with the next one
	before  = 80 // number of ended tasks before a member is killed
)

// task is a task as seen by its caller.
type task struct {
	id         string
	eventTimes []time.Time // arrival times of its events
	ended      bool
}

// taskRecord holds all tasks as seen by their callers.
type taskRecord struct {
	mu    sync.Mutex
	tasks []*task
}

func (r *taskRecord) withLock(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// underWay returns the unfinished tasks whose shard a member owns.
func (r *taskRecord) underWay(owners []wire.Shard, member string) (found []*task) {
	r.withLock(func() {
		for _, t := range r.tasks {
			if !t.ended && owners[persistence.ShardOf(t.id)].Member == member {
				found = append(found, t)
			}
		}
	})
	return found
}

// runTasks runs the tasks, kills a member meanwhile, and prints the result.
func (s *demoCluster) runTasks(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // also ends the callers
	s.printLine("Three members (%s, %s, %s) share one PostgreSQL; a worker is attached to %s.", names[0], names[1], names[2], names[0])
	if err := s.printOwners(ctx); err != nil {
		return err
	}
	s.printLine("%d callers, a third of them at each member, start %d tasks and follow them.", callers, tasks)
	seen, ended := &taskRecord{}, make(chan error)
	numbers := make(chan int, tasks)
	for n := range tasks {
		numbers <- n
	}
	close(numbers)
	for n := range callers {
		go s.runCaller(ctx, n, seen, numbers, ended)
	}
	var moved *memberLoss
	var failed []error
	for n := range tasks {
		if n == before {
			var err error
			if moved, err = s.killMember(ctx, seen); err != nil {
				return err
			}
		}
		failed = append(failed, <-ended)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	moved.printLoss(s, seen)
	s.printLine("All %d tasks have completed with the right result, and no call of a caller has failed.", tasks)
	return s.checkExecutions()
}

// runCaller is one caller. It reports how each task ended.
func (s *demoCluster) runCaller(ctx context.Context, n int, seen *taskRecord, numbers <-chan int, ended chan<- error) {
	c, err := s.clientOf(n)
	if err == nil {
		defer c.Close()
	}
	for number := range numbers {
		if err == nil {
			err = s.followTask(ctx, c, seen, number)
		}
		select {
		case ended <- err:
		case <-ctx.Done():
		}
	}
}

// followTask starts a task, follows its events until it has ended, and checks its result.
func (s *demoCluster) followTask(ctx context.Context, c *client.Client, seen *taskRecord, number int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started, err := c.Start(ctx, wire.StartRequest{Flow: "double", Params: json.RawMessage(fmt.Sprintf(`{"number": %d}`, number))})
	if err != nil {
		return err
	}
	t := &task{id: started.ID}
	seen.withLock(func() { seen.tasks = append(seen.tasks, t) })
	for _, err := range c.Watch(ctx, t.id, "") {
		if err != nil {
			return err
		}
		seen.withLock(func() { t.eventTimes = append(t.eventTimes, time.Now()) })
	}
	seen.withLock(func() { t.ended = true })
	got, err := c.Wait(ctx, t.id)
	if err != nil {
		return err
	}
	if got.State != "completed" || string(got.Result) != strconv.Itoa(4*number) {
		return fmt.Errorf("task %s of number %d: %s, %s %s", t.id, number, got.State, got.Result, got.Error)
	}
	return nil
}

// memberLoss is what a killed member owned, and the time of its end.
type memberLoss struct {
	at           time.Time
	tasks        []*task
	takeoverTime time.Duration // time until other members owned its shards
}

// killMember kills a member without warning and waits until other members own its shards.
func (s *demoCluster) killMember(ctx context.Context, seen *taskRecord) (*memberLoss, error) {
	shards, err := s.client.Shards(ctx, "")
	if err != nil {
		return nil, err
	}
	m := &memberLoss{at: time.Now(), tasks: seen.underWay(shards.Items, names[victim])}
	s.members[victim].Kill()
	s.printLine(
		"%d tasks are done. Now %s is killed (SIGKILL): it had %d of the tasks that are under way.",
		before, names[victim], len(m.tasks))
	err = s.awaitCondition(ctx, "others have its shards", func(ctx context.Context) bool {
		c, err := s.client.Members(ctx)
		return err == nil && c.Unowned == 0 && c.Items[victimOf(c)].State == "gone"
	})
	m.takeoverTime = time.Since(m.at)
	return m, err
}

// victimOf returns the index of the killed member in the list.
func victimOf(c *wire.Cluster) int {
	for i, m := range c.Items {
		if m.Name == names[victim] {
			return i
		}
	}
	return 0
}

// printLoss prints how long its tasks were interrupted.
func (m *memberLoss) printLoss(s *demoCluster, seen *taskRecord) {
	last := time.Duration(0)
	seen.withLock(func() {
		for _, t := range m.tasks {
			for _, at := range t.eventTimes {
				if at.After(m.at) {
					last = max(last, at.Sub(m.at))
					break
				}
			}
		}
	})
	s.printLine("%.1f s later its lease (2 s) had run out, and the others had fenced it and taken its shards.", m.takeoverTime.Seconds())
	s.printLine("The last of its tasks moved again %.1f s after the kill. Those of the others went on meanwhile.", last.Seconds())
}

// printOwners prints how many shards each member owns.
func (s *demoCluster) printOwners(ctx context.Context) error {
	c, err := s.client.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range c.Items {
		s.printLine("  %s at %s owns %d of 1024 shards", m.Name, m.URL, m.Shards)
	}
	return nil
}

// checkExecutions checks the worker's records.
func (s *demoCluster) checkExecutions() error {
	times, err := s.countExecutions()
	if err != nil {
		return err
	}
	again := 0
	for _, n := range times {
		again += n - 1
	}
	switch {
	case len(times) != 2*tasks:
		return fmt.Errorf("%d jobs were carried out, and %d tasks have two each", len(times), tasks)
	case again > 0: // a job is delivered at least once, and counts once
		s.printLine("Nothing was lost: the worker carried out %d jobs, %d of them again, since "+
			"their member died before it knew that they had begun.", len(times), again)
	default:
		s.printLine("Nothing was lost, and nothing was done twice: the worker carried out %d jobs, each of them once.", len(times))
	}
	return nil
}
