package program

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/internal/child"
)

const (
	// maxWarm is the largest number of warm interpreters of a Runner.
	maxWarm = 64
	// warmIdleTimeout is how long an unused interpreter is kept.
	warmIdleTimeout = 10 * time.Minute
	// warmRetryPause is the pause after a failed start. During it jobs run without a warm
	// interpreter.
	warmRetryPause = 10 * time.Second
)

// warmPool keeps Python interpreters that fork themselves for jobs.
type warmPool struct {
	logger *slog.Logger

	mu     sync.Mutex
	groups map[string]*warmGroup
	closed bool
	work   sync.WaitGroup
}

// warmGroup is a set of equal interpreters.
type warmGroup struct {
	cmd      child.Command
	wanted   int
	ready    []*child.Forker
	starting int
	// closed and replaced when an interpreter is ready or has failed to start
	changed   chan struct{}
	failed    time.Time // time of the last failed start
	used      time.Time
	idleTimer *time.Timer
}

// warmCommand returns the command of the warm interpreter for a job, and how many are wanted; 0 if
// none.
func (r *Runner) warmCommand(job *Job, cmd child.Command) (warm child.Command, want int) {
	if !child.CanFork || job.Type != flow.ExecPython || job.Program.Warm <= 0 {
		return warm, 0
	}
	own := map[string]string{"PYTHONUNBUFFERED": "1"}
	for name, value := range job.Program.Env {
		if isInterpreterVariable(name) {
			own[name] = value
		}
	}
	if path := pythonPath(nil, job.Program.Env["PYTHONPATH"], r.env); path != "" {
		own["PYTHONPATH"] = path
	}
	for _, entry := range cmd.Env {
		if name, value, _ := strings.Cut(entry, "="); name == "UV_CACHE_DIR" {
			own[name] = value
		}
	}
	return child.Command{Path: cmd.Path, Argv: append(slices.Clip(cmd.Argv), "--warm"),
		Dir: cmd.Dir, Env: child.Laid(r.env, own)}, job.Program.Warm
}

// isInterpreterVariable reports whether an interpreter reads the variable at its start, so that it
// cannot be set in a forked process.
func isInterpreterVariable(name string) bool {
	for _, begins := range []string{"PYTHON", "UV_", "LC_", "LD_", "DYLD_", "MALLOC_"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return slices.Contains([]string{"LANG", "LANGUAGE", "HOME", "VIRTUAL_ENV", "GLIBC_TUNABLES"}, name)
}

// warmGroupKey identifies equal interpreters. It changes when the packages of the root change.
func warmGroupKey(cmd child.Command) string {
	env := slices.Sorted(slices.Values(cmd.Env))
	parts := append(append([]string{cmd.Dir}, cmd.Argv...), env...)
	for _, file := range []string{cmd.Path, filepath.Join(cmd.Dir, "pyproject.toml"),
		filepath.Join(cmd.Dir, "uv.lock"), filepath.Join(cmd.Dir, ".venv", "pyvenv.cfg")} {
		if info, err := os.Stat(file); err == nil {
			parts = append(parts, strconv.FormatInt(info.ModTime().UnixNano(), 36))
		}
	}
	return strings.Join(parts, "\x00")
}

// takeForker returns an interpreter that can fork, or nil. After nil, the job starts a new
// interpreter.
func (h *warmPool) takeForker(ctx context.Context, cmd child.Command, want int) *child.Forker {
	key := warmGroupKey(cmd)
	for {
		h.mu.Lock()
		f := h.groupFor(key, cmd, want)
		if f == nil {
			h.mu.Unlock()
			return nil
		}
		h.refillGroup(f)
		best := f.leastBusy()
		changed, waits := f.changed, f.starting > 0
		h.mu.Unlock()
		if best != nil || !waits {
			return best
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// groupFor returns the group for a key, with the largest number of interpreters any job wants. It
// returns nil if there are too many other interpreters.
func (h *warmPool) groupFor(key string, cmd child.Command, want int) *warmGroup {
	if h.closed {
		return nil
	}
	f := h.groups[key]
	if f != nil && want > f.wanted && h.makeRoom(want-f.wanted, f) {
		f.wanted = want
	}
	if f == nil {
		if !h.makeRoom(want, nil) {
			return nil
		}
		f = &warmGroup{cmd: cmd, wanted: want, changed: make(chan struct{})}
		f.idleTimer = time.AfterFunc(warmIdleTimeout, func() { h.closeUnused(key, f) })
		if h.groups == nil {
			h.groups = map[string]*warmGroup{}
		}
		h.groups[key] = f
	}
	f.used = time.Now()
	return f
}

// makeRoom closes the least recently used groups until there is room for want more interpreters. It
// keeps groups in use, and the group that needs the room.
func (h *warmPool) makeRoom(want int, asks *warmGroup) bool {
	for {
		all, oldest := want, ""
		for key, f := range h.groups {
			all += f.wanted
			if f != asks && f.isIdle() && (oldest == "" || f.used.Before(h.groups[oldest].used)) {
				oldest = key
			}
		}
		if all <= maxWarm {
			return true
		}
		if oldest == "" {
			return false
		}
		h.closeGroup(oldest)
	}
}

// isIdle reports whether the group is unused and can be closed.
func (f *warmGroup) isIdle() bool {
	return f.starting == 0 && !slices.ContainsFunc(f.ready, func(z *child.Forker) bool { return z.Running() > 0 })
}

// closeGroup closes the interpreters of a group.
func (h *warmPool) closeGroup(key string) {
	f := h.groups[key]
	delete(h.groups, key)
	f.idleTimer.Stop()
	for _, z := range f.ready {
		h.work.Go(z.Close)
	}
	f.ready = nil
}

// closeUnused closes a group that was not used for a long time.
func (h *warmPool) closeUnused(key string, f *warmGroup) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.groups[key] != f {
		return
	}
	if left := warmIdleTimeout - time.Since(f.used); left > 0 || !f.isIdle() {
		f.idleTimer.Reset(max(left, time.Minute))
		return
	}
	h.closeGroup(key)
}

// refillGroup replaces ended interpreters and starts missing ones.
func (h *warmPool) refillGroup(f *warmGroup) {
	f.ready = slices.DeleteFunc(f.ready, func(z *child.Forker) bool {
		select {
		case <-z.Gone():
			h.work.Go(z.Close)
			return true
		default:
			return false
		}
	})
	if time.Since(f.failed) < warmRetryPause {
		return
	}
	for len(f.ready)+f.starting < f.wanted {
		f.starting++
		h.work.Go(func() { h.startForker(f) })
	}
}

func (h *warmPool) startForker(f *warmGroup) {
	z, err := child.StartForker(f.cmd)
	if err != nil {
		h.logger.Warn("no warm Python interpreter: attempts start cold",
			"command", strings.Join(f.cmd.Argv, " "), "folder", f.cmd.Dir, "error", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	f.starting--
	switch {
	case err != nil:
		f.failed = time.Now()
	case h.closed:
		h.work.Go(z.Close)
	default:
		f.ready = append(f.ready, z)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// leastBusy returns the interpreter with the fewest running processes.
func (f *warmGroup) leastBusy() *child.Forker {
	if len(f.ready) == 0 {
		return nil
	}
	return slices.MinFunc(f.ready, func(a, b *child.Forker) int { return cmp.Compare(a.Running(), b.Running()) })
}

// close ends all interpreters and the processes they have forked.
func (h *warmPool) close() {
	h.mu.Lock()
	h.closed = true
	for key := range h.groups {
		h.closeGroup(key)
	}
	h.mu.Unlock()
	h.work.Wait()
}

// startCommand forks a warm interpreter for a command if one is available, and otherwise starts the
// command.
func (r *Runner) startCommand(ctx context.Context, cmd, warm child.Command, want int) (*child.Process, error) {
	for want > 0 {
		z := r.warmPool.takeForker(ctx, warm, want)
		if z == nil {
			break
		}
		p, err := z.Start(cmd)
		if err == nil || !child.NotAsked(err) {
			return p, err
		}
		select {
		case <-z.Gone(): // try another interpreter
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return child.Start(cmd)
}
