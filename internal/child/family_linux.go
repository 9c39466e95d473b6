package child

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Family is a program that was started and all that it has started since. The zero value is nobody.
type Family struct{ mark uint64 }

// members of this process's families: marks begin at base, so no other process takes them for its
// own.
var families = struct {
	base uint64

	mu      sync.Mutex
	last    uint64              // mark that was given
	running map[uint64]struct{} // marks of those that are not to end
	ended   uint64              // how many families were to end so far
	planned [2]bool             // a sweep of a kind is to come

	sweeping sync.Mutex
	swept    [2]uint64 // ended, when the last sweep of a kind began
}{base: rand.Uint64N(1<<36) << marksBits, running: map[uint64]struct{}{}}

// marksBits is how many marks a process has: after 16 million families they are given anew.
const marksBits = 24

// New is the family of a program that is about to be started.
func New() Family {
	startKeeper()
	f := &families
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = (f.last + 1) % (1 << marksBits)
	mark := f.base + f.last
	f.running[mark] = struct{}{}
	return Family{mark}
}

// familyVariable of the environment that says the mark as well.
const familyVariable = "TROUPE_FAMILY="

// Variable belongs into the environment of the program.
func (f Family) Variable() string { return familyVariable + strconv.FormatUint(f.mark, 10) }

// Mark is 0 for nobody. A process of ours that is about to be one of the family may mark itself
// with it.
func (f Family) Mark() uint64 { return f.mark }

// Adopt is called as soon as the program was started.
func (f Family) Adopt(pid int) { setMark(pid, f.mark) }

// setMark marks a process, and what it may have started before it had the mark to hand on.
func setMark(pid int, mark uint64) {
	limit := unix.Rlimit{Cur: mark, Max: unix.RLIM_INFINITY}
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, &limit, nil) != nil {
		return // it has ended, or may not have this limit: then its process group has to do
	}
	for _, child := range childrenOf(pid) {
		if markOf(child) != mark {
			setMark(child, mark)
		}
	}
}

// childrenOf are none of a process that has ended.
func childrenOf(pid int) (pids []int) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, child := range bytes.Fields(children) {
		if pid, err := strconv.Atoi(string(child)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// markOf is 0 for a process that is nobody's, or not ours to look at.
func markOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}

// environMark is the mark in a process's environment. It tells those who were begun, and left by
// their parents, in the moment before the program was adopted.
func environMark(pid int) uint64 {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return 0 // somebody else's
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if said, ok := bytes.CutPrefix(entry, []byte(familyVariable)); ok {
			mark, _ := strconv.ParseUint(string(said), 10, 64)
			return mark
		}
	}
	return 0
}

// Kill ends the family, and returns when it has ended.
func (f Family) Kill() {
	if f.markEnded() {
		sweepFamilies(sweepThorough)
		f.Leave() // a process that begins another program at that moment has no environment to read
	}
}

// sweepEvery bounds what looking for families costs when short programs end all the time. A process
// that was begun at the very moment in which its parent was marked has no mark, and is found by its
// environment.
var sweepEvery = [2]time.Duration{sweepQuick: 100 * time.Millisecond, sweepThorough: time.Second}

// Leave is called when the program itself has ended: what it has left behind ends soon.
func (f Family) Leave() {
	if !f.markEnded() {
		return
	}
	families.mu.Lock()
	defer families.mu.Unlock()
	for how, wait := range sweepEvery {
		if !families.planned[how] {
			families.planned[how] = true
			time.AfterFunc(wait, func() { sweepFamilies(sweepMode(how)) })
		}
	}
}

// markEnded is false for nobody.
func (f Family) markEnded() bool {
	if f.mark == 0 {
		return false
	}
	families.mu.Lock()
	defer families.mu.Unlock()
	delete(families.running, f.mark)
	families.ended++
	return true
}

// sweepMode is how marks are looked for: reading every process's environment takes ten times as
// long.
type sweepMode int

const (
	sweepQuick sweepMode = iota
	sweepThorough
)

// sweepFamilies ends what is left of all families that are to end, unless somebody else just did.
func sweepFamilies(how sweepMode) {
	f := &families
	f.mu.Lock()
	f.planned[how] = false
	wanted := f.ended
	f.mu.Unlock()
	f.sweeping.Lock()
	defer f.sweeping.Unlock()
	if f.swept[how] >= wanted {
		return
	}
	f.mu.Lock()
	f.swept[how] = f.ended
	f.mu.Unlock()
	killAll(how, func(mark uint64) bool {
		if !hasSameBase(mark, f.base) {
			return false
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		_, running := f.running[mark]
		return !running
	})
}

// hasSameBase marks were given by the same process.
func hasSameBase(a, b uint64) bool { return a>>marksBits == b>>marksBits }

// sweepTimeout is how long processes are given to end that were killed: those that cannot be must
// not hold us up.
const sweepTimeout = time.Second

// killAll kills until nobody with such a mark is left: who is killed may have begun another one
// before.
func killAll(how sweepMode, doomed func(mark uint64) bool) {
	for begun := time.Now(); time.Since(begun) < sweepTimeout; time.Sleep(time.Millisecond) {
		left := false
		for _, pid := range listProcesses() {
			mark := markOf(pid)
			if mark == 0 && how == sweepThorough {
				mark = environMark(pid)
			}
			if mark != 0 && doomed(mark) && isAlive(pid) {
				left = true
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
		if !left {
			return
		}
	}
}

func listProcesses() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1) // as many as could be read
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isAlive is false for a process that has ended and waits for its parent to notice.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
