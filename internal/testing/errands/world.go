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

// World is the environment of the members: programs in their working folder, an external system,
// and schedules.
type World struct {
	Outside *Outside
	dir     string // working folder of members and workers
	lives   memberLives
	clocks  *Clocks
}

// NewWorld returns a World for members that run in a folder and reach the host of the test at an
// address. It ends with the test.
func NewWorld(t *testing.T, dir, host string) *World {
	require.NoError(t, putPrograms(dir))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, containersFolder), 0o777))
	outside, err := newOutside(host)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = outside.server.Close() // no requests follow
	})
	return &World{Outside: outside, dir: dir}
}

// Prepare prepares the start of a member. After the start, the caller calls watch with a channel
// that is closed at the end of the member.
func (w *World) Prepare(cmd *exec.Cmd, name string) (watch func(done <-chan struct{})) {
	cmd.Dir = w.dir // working folder of the member's programs
	cmd.Args = append(cmd.Args, "--allow-scripts", "--child-env", lifeVariable+","+outsideVariable)
	if host := containerHost(); host != "" {
		cmd.Args = append(cmd.Args, "--allow-containers", "--container-host", host, "--script-dir", w.dir)
	}
	life := newLifeMark(name)
	cmd.Env = append(cmd.Environ(), life, outsideVariable+"="+w.Outside.Address)
	return func(done <-chan struct{}) { w.lives.watchLife(life, done) }
}

// StartClocks starts the schedules.
func (w *World) StartClocks(ctx context.Context, c *Client) (err error) {
	w.clocks, err = startClocks(ctx, c)
	return err
}

// Settle waits until all tasks of schedules have ended and all containers are removed.
func (w *World) Settle(ctx context.Context, c *Client, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.clocks.awaitSlots(ctx, c); err != nil {
		return err
	}
	return noContainers(ctx, filepath.Join(w.dir, containersFolder))
}

// Findings are the measurements of a World.
type Findings struct {
	Lost    int           // attempts whose program was lost with its member
	Orphans time.Duration // longest life of a program after its member
	Outside int           // number of external jobs …
	Adopted int           // number of repeated starts of external jobs
	Slots   int           // slots of schedules
	Boxes   int           // attempts in containers
}

// Kept compares the records of the World with the journals after all members have ended.
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
