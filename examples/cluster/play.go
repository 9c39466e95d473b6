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
	callers = 24 // each starts a task and follows it to its end, then the next one
	before  = 80 // tasks that have ended when a member is killed
)

// task is a task as its caller saw it.
type task struct {
	id    string
	heard []time.Time // when an event of it came
	ended bool
}

// record is all tasks as their callers saw them.
type record struct {
	mu    sync.Mutex
	tasks []*task
}

func (r *record) with(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// underWay are the tasks that have not ended and whose shard a member owns.
func (r *record) underWay(owners []wire.Shard, member string) (found []*task) {
	r.with(func() {
		for _, t := range r.tasks {
			if !t.ended && owners[persistence.ShardOf(t.id)].Member == member {
				found = append(found, t)
			}
		}
	})
	return found
}

// play has the tasks carried out, kills a member meanwhile, and tells what came of it.
func (s *stage) play(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the callers, too
	s.say("Three members (%s, %s, %s) share one PostgreSQL; a worker is attached to %s.", names[0], names[1], names[2], names[0])
	if err := s.tellOwners(ctx); err != nil {
		return err
	}
	s.say("%d callers, a third of them at each member, start %d tasks and follow them.", callers, tasks)
	seen, ended := &record{}, make(chan error)
	numbers := make(chan int, tasks)
	for n := range tasks {
		numbers <- n
	}
	close(numbers)
	for n := range callers {
		go s.call(ctx, n, seen, numbers, ended)
	}
	var moved *move
	var failed []error
	for n := range tasks {
		if n == before {
			var err error
			if moved, err = s.kill(ctx, seen); err != nil {
				return err
			}
		}
		failed = append(failed, <-ended)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	moved.tell(s, seen)
	s.say("All %d tasks have completed with the right result, and no call of a caller has failed.", tasks)
	return s.audit()
}

// call is one caller. It tells of each task how it ended.
func (s *stage) call(ctx context.Context, n int, seen *record, numbers <-chan int, ended chan<- error) {
	c, err := s.clientOf(n)
	if err == nil {
		defer c.Close()
	}
	for number := range numbers {
		if err == nil {
			err = s.follow(ctx, c, seen, number)
		}
		select {
		case ended <- err:
		case <-ctx.Done():
		}
	}
}

// follow starts a task, hears of its events until it has ended, and looks at what came of it.
func (s *stage) follow(ctx context.Context, c *client.Client, seen *record, number int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	started, err := c.Start(ctx, wire.Start{Flow: "double", Params: json.RawMessage(fmt.Sprintf(`{"number": %d}`, number))})
	if err != nil {
		return err
	}
	t := &task{id: started.ID}
	seen.with(func() { seen.tasks = append(seen.tasks, t) })
	for _, err := range c.Watch(ctx, t.id, "") {
		if err != nil {
			return err
		}
		seen.with(func() { t.heard = append(t.heard, time.Now()) })
	}
	seen.with(func() { t.ended = true })
	got, err := c.Wait(ctx, t.id)
	if err != nil {
		return err
	}
	if got.State != "completed" || string(got.Result) != strconv.Itoa(4*number) {
		return fmt.Errorf("task %s of number %d: %s, %s %s", t.id, number, got.State, got.Result, got.Error)
	}
	return nil
}

// move is what a killed member had, and when.
type move struct {
	at    time.Time
	tasks []*task
	taken time.Duration // until its shards were others'
}

// kill ends a member without warning and waits until others have its shards.
func (s *stage) kill(ctx context.Context, seen *record) (*move, error) {
	shards, err := s.client.Shards(ctx, "")
	if err != nil {
		return nil, err
	}
	m := &move{at: time.Now(), tasks: seen.underWay(shards.Items, names[victim])}
	s.members[victim].Kill()
	s.say("%d tasks are done. Now %s is killed (SIGKILL): it had %d of the tasks that are under way.", before, names[victim], len(m.tasks))
	err = s.await(ctx, "others have its shards", func(ctx context.Context) bool {
		c, err := s.client.Members(ctx)
		return err == nil && c.Unowned == 0 && c.Items[victimOf(c)].State == "gone"
	})
	m.taken = time.Since(m.at)
	return m, err
}

// victimOf is which member of the list was killed.
func victimOf(c *wire.Cluster) int {
	for i, m := range c.Items {
		if m.Name == names[victim] {
			return i
		}
	}
	return 0
}

// tell says how long its tasks stood still.
func (m *move) tell(s *stage, seen *record) {
	last := time.Duration(0)
	seen.with(func() {
		for _, t := range m.tasks {
			for _, at := range t.heard {
				if at.After(m.at) {
					last = max(last, at.Sub(m.at))
					break
				}
			}
		}
	})
	s.say("%.1f s later its lease (2 s) had run out, and the others had fenced it and taken its shards.", m.taken.Seconds())
	s.say("The last of its tasks moved again %.1f s after the kill. Those of the others went on meanwhile.", last.Seconds())
}

// tellOwners says who owns how much.
func (s *stage) tellOwners(ctx context.Context) error {
	c, err := s.client.Members(ctx)
	if err != nil {
		return err
	}
	for _, m := range c.Items {
		s.say("  %s at %s owns %d of 1024 shards", m.Name, m.URL, m.Shards)
	}
	return nil
}

// audit looks at what the worker noted.
func (s *stage) audit() error {
	times, err := s.executions()
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
		s.say("Nothing was lost: the worker carried out %d jobs, %d of them again, since their member died before it knew that they had begun.", len(times), again)
	default:
		s.say("Nothing was lost, and nothing was done twice: the worker carried out %d jobs, each of them once.", len(times))
	}
	return nil
}
