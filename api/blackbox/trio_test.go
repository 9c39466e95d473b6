package blackbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/troupe-engine/troupe"
	"github.com/troupe-engine/troupe/api/ui"
)

// trio is a cluster of three members, wired as in programs that embed one.
type trio struct {
	members []*troupe.Engine
	bases   []string
	said    *complaints
	leave   context.CancelFunc
	serving sync.WaitGroup
	mu      sync.Mutex
	failed  error
}

func startTrio(ctx context.Context, place string, lease time.Duration) (*trio, error) {
	serve, leave := context.WithCancel(context.WithoutCancel(ctx))
	c := &trio{said: &complaints{}, leave: leave}
	for i := range 3 {
		if err := c.add(ctx, serve, place, fmt.Sprintf("blackbox-%d", i), lease); err != nil {
			return nil, errors.Join(err, c.stop())
		}
	}
	return c, c.whole(ctx)
}

// add starts one more member.
func (c *trio) add(ctx, serve context.Context, place, name string, lease time.Duration) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(c.said, &slog.HandlerOptions{Level: slog.LevelWarn}))
	m, err := troupe.Open(ctx, troupe.Config{Store: place, Name: name, Listen: l.Addr().String(),
		Listener: l, UI: ui.Handler(), Gossip: "127.0.0.1:0", Lease: lease,
		AllowScripts: true, Trackers: map[string]troupe.Tracker{endlessService: endless},
		PollNetworks: thisHost, AllowMock: true, SecretDir: exampleSecrets,
		ObjectStore: "file://" + filepath.ToSlash(os.Getenv(objectsPlace)), Logger: log})
	if err != nil {
		return errors.Join(err, l.Close())
	}
	c.members = append(c.members, m)
	c.bases = append(c.bases, "http://"+l.Addr().String())
	c.serving.Go(func() { c.note(m.Serve(serve, l)) })
	return nil
}

func (c *trio) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
}

// whole waits until every member is ready.
func (c *trio) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	for _, m := range c.members {
		engine, err := m.Member(ctx)
		for err == nil && engine.Ready() != nil {
			select {
			case <-ctx.Done():
				err = engine.Ready()
			case <-time.After(10 * time.Millisecond):
			}
		}
		if err != nil {
			return errors.Join(err, c.stop())
		}
	}
	return nil
}

func (c *trio) urls() []string          { return slices.Clone(c.bases) }
func (c *trio) complaints() *complaints { return c.said }

func (c *trio) stop() error {
	c.leave()
	c.serving.Wait()
	for _, m := range c.members {
		c.serving.Go(func() { c.note(m.Close()) })
	}
	c.serving.Wait()
	return c.failed
}
