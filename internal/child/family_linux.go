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

// Family is a started program together with all its descendants. The zero value is no family.
type Family struct{ mark uint64 }

// families are the families of this process. Their marks begin at base, so that no other process
// takes the marks for its own.
var families = struct {
	base uint64

	mu      sync.Mutex
	last    uint64              // the mark assigned last
	running map[uint64]struct{} // marks of the families that must keep running
	ended   uint64              // number of families to be ended so far
	planned [2]bool             // whether a sweep of each mode is scheduled

	sweeping sync.Mutex
	swept    [2]uint64 // value of ended when the last sweep of each mode began
}{base: rand.Uint64N(1<<36) << marksBits, running: map[uint64]struct{}{}}

// marksBits is the number of bits for the marks of a process. After 16 million families the marks
// are reused.
const marksBits = 24

// New returns the family of a program that is about to be started.
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

// familyVariable is the environment variable that also holds the mark.
const familyVariable = "TROUPE_FAMILY="

// Variable returns the entry for the environment of the program.
func (f Family) Variable() string { return familyVariable + strconv.FormatUint(f.mark, 10) }

// Mark returns the mark, or 0 for no family. A child of this process that is about to join the
// family may set the mark on itself.
func (f Family) Mark() uint64 { return f.mark }

// Adopt marks a started program. It is called immediately after the start.
func (f Family) Adopt(pid int) { setMark(pid, f.mark) }

// setMark marks a process, and the children that the process may have started before it was marked.
func setMark(pid int, mark uint64) {
	limit := unix.Rlimit{Cur: mark, Max: unix.RLIM_INFINITY}
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, &limit, nil) != nil {
		// the process has ended, or may not have this limit; then only its process group can be
		// ended
		return
	}
	for _, child := range childrenOf(pid) {
		if markOf(child) != mark {
			setMark(child, mark)
		}
	}
}

// childrenOf returns the children of a process; none if it has ended.
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

// markOf returns the mark of a process; 0 if the process has no mark or may not be inspected.
func markOf(pid int) uint64 {
	var limit unix.Rlimit
	if unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit) != nil || limit.Cur == unix.RLIM_INFINITY {
		return 0
	}
	return limit.Cur
}

// environMark returns the mark in the environment of a process. The mark identifies processes that
// were started, and lost their parents, before the program was adopted.
func environMark(pid int) uint64 {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return 0 // process of another user
	}
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if said, ok := bytes.CutPrefix(entry, []byte(familyVariable)); ok {
			mark, _ := strconv.ParseUint(string(said), 10, 64)
			return mark
		}
	}
	return 0
}

// Kill ends the family and returns when all its processes have ended.
func (f Family) Kill() {
	if f.markEnded() {
		sweepFamilies(sweepThorough)
		f.Leave() // a process that is just executing another program has no readable environment
	}
}

// sweepEvery is the interval between sweeps of each mode. The interval bounds the cost of sweeps
// when many short programs end. The thorough sweep also finds processes without a mark, which were
// started while their parent was being marked.
var sweepEvery = [2]time.Duration{sweepQuick: 100 * time.Millisecond, sweepThorough: time.Second}

// Leave marks the family as to be ended when the program itself has ended. The remaining processes
// end soon after.
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

// markEnded marks the family as to be ended. It returns false for the zero Family.
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

// sweepMode is a way to search for marks. The thorough mode also reads the environment of every
// process, which takes ten times as long.
type sweepMode int

const (
	sweepQuick sweepMode = iota
	sweepThorough
)

// sweepFamilies ends the rest of all families that are to be ended, unless a concurrent sweep just
// did so.
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

// hasSameBase reports whether two marks were assigned by the same process.
func hasSameBase(a, b uint64) bool { return a>>marksBits == b>>marksBits }

// sweepTimeout bounds the wait for killed processes to end, so that a process that cannot be killed
// does not block the sweep.
const sweepTimeout = time.Second

// killAll kills processes until no process has a doomed mark. The search is repeated because a
// killed process may have started another process just before.
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
	names, _ := proc.Readdirnames(-1) // a partial list is used as it is
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isAlive reports whether a process is running; a zombie is not.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}
