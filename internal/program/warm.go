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
	// maxWarm bounds how many interpreters a runner keeps.
	maxWarm = 64
	// warmIdleTimeout is how long one is kept that nobody asks for anything.
	warmIdleTimeout = 10 * time.Minute
	// warmRetryPause is how long after a failure none is started again: meanwhile jobs begin
	// without.
	warmRetryPause = 10 * time.Second
)

// warmPool keeps interpreters of Python that fork themselves for jobs.
type warmPool struct {
	logger *slog.Logger

	mu     sync.Mutex
	groups map[string]*warmGroup
	closed bool
	work   sync.WaitGroup
}

// warmGroup is a set of interpreters that are alike.
type warmGroup struct {
	cmd       child.Command
	wanted    int
	ready     []*child.Forker
	starting  int
	changed   chan struct{} // closed, and made anew, when one is ready or was not to be
	failed    time.Time     // when one was not to be
	used      time.Time
	idleTimer *time.Timer
}

// warmCommand is how a job's interpreter is kept warm, if it is to be.
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
	return child.Command{Path: cmd.Path, Argv: append(slices.Clip(cmd.Argv), "--warm"), Dir: cmd.Dir, Env: child.Laid(r.env, own)}, job.Program.Warm
}

// isInterpreterVariable says of a variable that it means something to an interpreter when it
// starts, so that it cannot be told later.
func isInterpreterVariable(name string) bool {
	for _, begins := range []string{"PYTHON", "UV_", "LC_", "LD_", "DYLD_", "MALLOC_"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return slices.Contains([]string{"LANG", "LANGUAGE", "HOME", "VIRTUAL_ENV", "GLIBC_TUNABLES"}, name)
}

// warmGroupKey tells interpreters that are alike. Those of a root whose packages have changed are
// others.
func warmGroupKey(cmd child.Command) string {
	env := slices.Sorted(slices.Values(cmd.Env))
	parts := append(append([]string{cmd.Dir}, cmd.Argv...), env...)
	for _, file := range []string{cmd.Path, filepath.Join(cmd.Dir, "pyproject.toml"), filepath.Join(cmd.Dir, "uv.lock"), filepath.Join(cmd.Dir, ".venv", "pyvenv.cfg")} {
		if info, err := os.Stat(file); err == nil {
			parts = append(parts, strconv.FormatInt(info.ModTime().UnixNano(), 36))
		}
	}
	return strings.Join(parts, "\x00")
}

// takeForker is an interpreter that can fork, or nil where none is to be had: then a job begins
// without.
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

// groupFor of a kind, with as many interpreters as whoever wants most of them. It is nil when there
// are too many others.
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

// makeRoom makes room for so many more. What was used last is let go last; what is in use is not,
// nor who asks.
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

// isIdle says that nobody would notice its end.
func (f *warmGroup) isIdle() bool {
	return f.starting == 0 && !slices.ContainsFunc(f.ready, func(z *child.Forker) bool { return z.Running() > 0 })
}

// closeGroup lets interpreters go.
func (h *warmPool) closeGroup(key string) {
	f := h.groups[key]
	delete(h.groups, key)
	f.idleTimer.Stop()
	for _, z := range f.ready {
		h.work.Go(z.Close)
	}
	f.ready = nil
}

// closeUnused lets interpreters go that nobody has used for long.
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

// refillGroup replaces what is gone and starts what is missing.
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
		h.logger.Warn("no interpreter of Python can be kept warm: attempts begin without", "command", strings.Join(f.cmd.Argv, " "), "folder", f.cmd.Dir, "error", err)
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

// leastBusy is the one with the least to do.
func (f *warmGroup) leastBusy() *child.Forker {
	if len(f.ready) == 0 {
		return nil
	}
	return slices.MinFunc(f.ready, func(a, b *child.Forker) int { return cmp.Compare(a.Running(), b.Running()) })
}

// close ends all of them, and what they have forked.
func (h *warmPool) close() {
	h.mu.Lock()
	h.closed = true
	for key := range h.groups {
		h.closeGroup(key)
	}
	h.mu.Unlock()
	h.work.Wait()
}

// startCommand starts a command: by an interpreter that is warm, if it has one, else by itself.
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
		case <-z.Gone(): // another is asked
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return child.Start(cmd)
}
