package errands

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// World is what there is around members: programs in the folder that they run in, another system,
// and clocks.
type World struct {
	Outside *Outside
	dir     string // that members and workers run in
	lives   memberLives
	clocks  *Clocks
}

// NewWorld is one for members that run in a folder, and reach the host of the test at an address.
// It ends with the test.
func NewWorld(t *testing.T, dir, host string) *World {
	require.NoError(t, putPrograms(dir))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, containersFolder), 0o777))
	outside, err := newOutside(host)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = outside.server.Close() // nobody asks any more
	})
	return &World{Outside: outside, dir: dir}
}

// Prepare prepares the start of a member. Once that has been started, whoever did calls watch with
// what tells its end.
func (w *World) Prepare(cmd *exec.Cmd, name string) (watch func(done <-chan struct{})) {
	cmd.Dir = w.dir // programs run here
	cmd.Args = append(cmd.Args, "--allow-scripts", "--child-env", lifeVariable+","+outsideVariable)
	if host := containerHost(); host != "" {
		cmd.Args = append(cmd.Args, "--allow-containers", "--container-host", host, "--script-dir", w.dir)
	}
	life := newLifeMark(name)
	cmd.Env = append(cmd.Environ(), life, outsideVariable+"="+w.Outside.Address)
	return func(done <-chan struct{}) { w.lives.watchLife(life, done) }
}

// StartClocks begins what goes by the clock.
func (w *World) StartClocks(ctx context.Context, c *Client) (err error) {
	w.clocks, err = startClocks(ctx, c)
	return err
}

// Settle waits until all that has begun by the clock has ended, and members have removed all
// containers.
func (w *World) Settle(ctx context.Context, c *Client, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.clocks.awaitSlots(ctx, c); err != nil {
		return err
	}
	return noContainers(ctx, filepath.Join(w.dir, containersFolder))
}

// Findings are what came of a run around its members.
type Findings struct {
	Lost    int           // attempts whose program was lost with its member
	Orphans time.Duration // how long something was left of a member that had ended
	Outside int           // jobs that were begun outside …
	Adopted int           // … and how often one was found that had been begun already
	Slots   int           // of schedules
	Boxes   int           // attempts in containers
}

// Kept holds the world to what journals say, when all members have ended.
func (w *World) Kept(t *testing.T, f Figures) (found Findings) {
	t.Helper()
	w.lives.watches.Wait()
	assert.Empty(t, w.lives.left, "programs that members have left behind")
	found.Orphans, found.Lost = w.lives.longest, f.checkPrograms(t, w.dir)
	for _, a := range f.attempts {
		if a.inContainer {
			found.Boxes++
		}
	}
	found.Outside, found.Adopted = w.Outside.checkJobs(t, f)
	if w.clocks != nil {
		found.Slots = w.clocks.checkSlots(t, f)
	}
	return found
}
