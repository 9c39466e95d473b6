package v1_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/api/wire"
	"github.com/troupe-engine/troupe/persistence"
)

// tasksOf subscribes to the tasks of a filter.
func (k *clientSocket) tasksOf(channel, filter string) {
	k.Helper()
	k.send(fmt.Sprintf(`{"subscribe": {"channel": %q, "filter": %s}}`, channel, filter))
	k.nextOf(channel, wire.StreamSubscribed)
}

// news reads messages of a tasks channel until enough returns true.
func (k *clientSocket) news(channel string, enough func(wire.TaskNews) bool) {
	k.Helper()
	for {
		m := k.nextOf(channel, wire.StreamTasks)
		if enough(said[wire.TaskNews](k.T, m)) {
			return
		}
	}
}

func TestAListOfTasksIsFollowed(t *testing.T) {
	onBothStores(t, func(s *server) {
		slug := s.publish(waits)
		old := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
		k := s.socket()
		k.tasksOf("tasks", fmt.Sprintf(`{"flow": [%q], "state": ["running"]}`, slug))
		s.task(waits) // of another flow
		id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
		fresh := 0
		k.news("tasks", func(n wire.TaskNews) bool {
			fresh += n.New
			for _, task := range n.Changed {
				require.Equal(t, slug, task.Flow)
				if task.ID == id && len(task.WaitingFor) > 0 {
					return true
				}
			}
			return false
		})
		require.Equal(t, 1, fresh, "the one that was there is not new")
		for _, task := range []string{id, old} {
			s.call(200, "POST", "/v1/tasks/"+task+"/signal", obj{"key": "go", "value": "now"})
			k.news("tasks", func(n wire.TaskNews) bool { return len(n.Left) == 1 && n.Left[0] == task })
		}
		k.send(`{"unsubscribe": {"channel": "tasks"}}`)
		require.Equal(t, wire.ClosedUnsubscribed, said[wire.Closed](t, k.nextOf("tasks", wire.StreamClosed)).Reason)
	})
}

func TestAWrongFilterOfTasksIsRefused(t *testing.T) {
	s := start(t)
	k := s.socket()
	for sent, where := range map[string]string{
		`{"channel": "tasks", "filter": {"flow": ["no"]}}`:                                       "subscribe.filter.flow",
		`{"channel": "tasks", "filter": {"state": ["no"]}}`:                                      "subscribe.filter.state",
		`{"channel": "tasks", "filter": {"label": [` + strings.Repeat(`"a:b",`, 20) + `"c:d"]}}`: "subscribe.filter.label",
		`{"channel": "tasks", "after": "1"}`:                                                     "subscribe",
		`{"channel": "task:x", "filter": {"state": ["running"]}}`:                                "subscribe.filter",
		`{"channel": "tasks", "scopes": ["/"]}`:                                                  "subscribe",
		`{"channel": "tasksof", "filter": {"state": ["running"]}}`:                               "subscribe.filter",
	} {
		k.send(`{"subscribe": ` + sent + `}`)
		m := k.next()
		require.Equal(t, wire.StreamRejected, m.Event, "%s", m.Data)
		require.Equal(t, where, said[wire.Problem](t, m).Field)
	}
}

// looks counts the reads of the last updated tasks.
type looks struct {
	persistence.Store
	n atomic.Int64
}

func (l *looks) ListTasks(ctx context.Context, f persistence.TaskFilter) ([]persistence.TaskRow, error) {
	if f.ByUpdate {
		l.n.Add(1)
	}
	return l.Store.ListTasks(ctx, f)
}

func TestFollowersOfListsShareOneRead(t *testing.T) {
	var store *looks
	s := start(t, func(set *settings) {
		set.wrap = func(under persistence.Store) persistence.Store {
			store = &looks{Store: under}
			return store
		}
	})
	slug := s.publish(waits)
	require.Zero(t, store.n.Load(), "nobody listens")
	const listeners = 20
	k := s.socket()
	for i := range listeners {
		k.tasksOf(fmt.Sprint("tasks:", i), `{}`)
	}
	before := store.n.Load()
	s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
	told := map[string]bool{}
	for len(told) < listeners {
		m := k.next()
		require.Equal(t, wire.StreamTasks, m.Event)
		told[m.Channel] = true
	}
	require.LessOrEqual(t, store.n.Load()-before, int64(10), "not one look for each")
	require.NoError(t, k.conn.CloseNow())
}

// flood is a store in which more tasks change than one read returns.
type flood struct {
	persistence.Store
	on atomic.Bool
}

func (f *flood) ListTasks(ctx context.Context, filter persistence.TaskFilter) ([]persistence.TaskRow, error) {
	rows, err := f.Store.ListTasks(ctx, filter)
	if err != nil || !filter.ByUpdate || !f.on.Load() {
		return rows, err
	}
	last := rows[0]
	for len(rows) < filter.Limit {
		last.UpdatedAt++
		last.ID = fmt.Sprint(rows[0].ID, len(rows))
		rows = append(rows, last)
	}
	return rows, nil
}

func TestAFollowerOfAListLearnsThatTooManyTasksChanged(t *testing.T) {
	var store *flood
	s := start(t, func(set *settings) {
		set.wrap = func(under persistence.Store) persistence.Store {
			store = &flood{Store: under}
			return store
		}
	})
	slug := s.publish(waits)
	s.call(201, "POST", "/v1/tasks", obj{"flow": slug})
	k := s.socket()
	k.tasksOf("tasks", `{}`)
	store.on.Store(true)
	k.nextOf("tasks", wire.StreamStale)
	store.on.Store(false)
	id := s.call(201, "POST", "/v1/tasks", obj{"flow": slug})["id"].(string)
	k.news("tasks", func(n wire.TaskNews) bool { return len(n.Changed) > 0 && n.Changed[0].ID == id })
}
