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
	// mostWarm bounds how many interpreters a runner keeps.
	mostWarm = 64
	// coolAfter is how long one is kept that nobody asks for anything.
	coolAfter = 10 * time.Minute
	// warmAgain is how long after a failure none is started again: meanwhile jobs begin without.
	warmAgain = 10 * time.Second
)

// hearth keeps interpreters of Python that fork themselves for jobs.
type hearth struct {
	logger *slog.Logger

	mu     sync.Mutex
	fires  map[string]*fire
	closed bool
	work   sync.WaitGroup
}

// fire is a set of interpreters that are alike.
type fire struct {
	cmd      child.Command
	want     int
	ready    []*child.Forker
	starting int
	changed  chan struct{} // closed, and made anew, when one is ready or was not to be
	failed   time.Time     // when one was not to be
	used     time.Time
	cooling  *time.Timer
}

// warmer is how a job's interpreter is kept warm, if it is to be.
func (r *Runner) warmer(job *Job, cmd child.Command) (warm child.Command, want int) {
	if !child.CanFork || job.Type != flow.ExecPython || job.Program.Warm <= 0 {
		return warm, 0
	}
	own := map[string]string{"PYTHONUNBUFFERED": "1"}
	for name, value := range job.Program.Env {
		if ofInterpreter(name) {
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

// ofInterpreter says of a variable that it means something to an interpreter when it starts, so that it cannot be told later.
func ofInterpreter(name string) bool {
	for _, begins := range []string{"PYTHON", "UV_", "LC_", "LD_", "DYLD_", "MALLOC_"} {
		if strings.HasPrefix(name, begins) {
			return true
		}
	}
	return slices.Contains([]string{"LANG", "LANGUAGE", "HOME", "VIRTUAL_ENV", "GLIBC_TUNABLES"}, name)
}

// kind tells interpreters that are alike. Those of a root whose packages have changed are others.
func kind(cmd child.Command) string {
	env := slices.Sorted(slices.Values(cmd.Env))
	parts := append(append([]string{cmd.Dir}, cmd.Argv...), env...)
	for _, file := range []string{cmd.Path, filepath.Join(cmd.Dir, "pyproject.toml"), filepath.Join(cmd.Dir, "uv.lock"), filepath.Join(cmd.Dir, ".venv", "pyvenv.cfg")} {
		if info, err := os.Stat(file); err == nil {
			parts = append(parts, strconv.FormatInt(info.ModTime().UnixNano(), 36))
		}
	}
	return strings.Join(parts, "\x00")
}

// take is an interpreter that can fork, or nil where none is to be had: then a job begins without.
func (h *hearth) take(ctx context.Context, cmd child.Command, want int) *child.Forker {
	key := kind(cmd)
	for {
		h.mu.Lock()
		f := h.fire(key, cmd, want)
		if f == nil {
			h.mu.Unlock()
			return nil
		}
		h.stoke(f)
		best := f.best()
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

// fire of a kind, with as many interpreters as whoever wants most of them. It is nil when there are too many others.
func (h *hearth) fire(key string, cmd child.Command, want int) *fire {
	if h.closed {
		return nil
	}
	f := h.fires[key]
	if f != nil && want > f.want && h.room(want-f.want, f) {
		f.want = want
	}
	if f == nil {
		if !h.room(want, nil) {
			return nil
		}
		f = &fire{cmd: cmd, want: want, changed: make(chan struct{})}
		f.cooling = time.AfterFunc(coolAfter, func() { h.cool(key, f) })
		if h.fires == nil {
			h.fires = map[string]*fire{}
		}
		h.fires[key] = f
	}
	f.used = time.Now()
	return f
}

// room makes room for so many more. What was used last is let go last; what is in use is not, nor who asks.
func (h *hearth) room(want int, asks *fire) bool {
	for {
		all, oldest := want, ""
		for key, f := range h.fires {
			all += f.want
			if f != asks && f.idle() && (oldest == "" || f.used.Before(h.fires[oldest].used)) {
				oldest = key
			}
		}
		if all <= mostWarm {
			return true
		}
		if oldest == "" {
			return false
		}
		h.end(oldest)
	}
}

// idle says that nobody would notice its end.
func (f *fire) idle() bool {
	return f.starting == 0 && !slices.ContainsFunc(f.ready, func(z *child.Forker) bool { return z.Running() > 0 })
}

// end lets interpreters go.
func (h *hearth) end(key string) {
	f := h.fires[key]
	delete(h.fires, key)
	f.cooling.Stop()
	for _, z := range f.ready {
		h.work.Go(z.Close)
	}
	f.ready = nil
}

// cool lets interpreters go that nobody has used for long.
func (h *hearth) cool(key string, f *fire) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || h.fires[key] != f {
		return
	}
	if left := coolAfter - time.Since(f.used); left > 0 || !f.idle() {
		f.cooling.Reset(max(left, time.Minute))
		return
	}
	h.end(key)
}

// stoke replaces what is gone and starts what is missing.
func (h *hearth) stoke(f *fire) {
	f.ready = slices.DeleteFunc(f.ready, func(z *child.Forker) bool {
		select {
		case <-z.Gone():
			h.work.Go(z.Close)
			return true
		default:
			return false
		}
	})
	if time.Since(f.failed) < warmAgain {
		return
	}
	for len(f.ready)+f.starting < f.want {
		f.starting++
		h.work.Go(func() { h.start(f) })
	}
}

func (h *hearth) start(f *fire) {
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

// best is the one with the least to do.
func (f *fire) best() *child.Forker {
	if len(f.ready) == 0 {
		return nil
	}
	return slices.MinFunc(f.ready, func(a, b *child.Forker) int { return cmp.Compare(a.Running(), b.Running()) })
}

// close ends all of them, and what they have forked.
func (h *hearth) close() {
	h.mu.Lock()
	h.closed = true
	for key := range h.fires {
		h.end(key)
	}
	h.mu.Unlock()
	h.work.Wait()
}

// begin starts a command: by an interpreter that is warm, if it has one, else by itself.
func (r *Runner) begin(ctx context.Context, cmd, warm child.Command, want int) (*child.Process, error) {
	for want > 0 {
		z := r.hearth.take(ctx, warm, want)
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
