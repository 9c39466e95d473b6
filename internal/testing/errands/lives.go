package errands

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lifeVariable marks one run of a member. All programs started by the member inherit the variable.
const lifeVariable = "TROUPE_ERRANDS_LIFE"

// orphanTime is the time after the end of a member within which all its programs must have ended.
const orphanTime = time.Second

// memberLives watches the programs of members. It works only on Linux.
type memberLives struct {
	mu      sync.Mutex
	watches sync.WaitGroup
	longest time.Duration // longest time until all programs had ended
	left    []string      // programs still running after orphanTime
}

// newLifeMark returns the mark for a new run of a member, inherited by its programs.
func newLifeMark(name string) string {
	return fmt.Sprintf("%s=%s-%d", lifeVariable, name, rand.Uint64())
}

// watchLife finds the programs left behind by a run that ends when done is closed.
func (l *memberLives) watchLife(mark string, done <-chan struct{}) {
	l.watches.Go(func() {
		<-done
		ended := time.Now()
		left, after := findPrograms(mark), time.Duration(0) // the search takes time, too
		for len(left) > 0 && after < orphanTime {
			time.Sleep(5 * time.Millisecond)
			after = time.Since(ended)
			left = findPrograms(mark)
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.longest = max(l.longest, after)
		for _, program := range left {
			l.left = append(l.left, fmt.Sprintf("%v after its member had ended (%s): %s", orphanTime, mark, program))
		}
	})
}

// findPrograms returns the running programs with a mark. Zombies have none.
func findPrograms(mark string) (found []string) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte(mark)) {
			continue
		}
		// the process may have ended meanwhile
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		found = append(found, filepath.Base(filepath.Dir(path))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return found
}
