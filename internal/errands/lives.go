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

// lifeVariable is the mark of one life of a member, which it hands on to the programs that it
// starts.
const lifeVariable = "TROUPE_ERRANDS_LIFE"

// orphanTime is how soon nothing is left of what a member had started, once it has ended.
const orphanTime = time.Second

// memberLives are those of members. Only Linux tells what they leave behind.
type memberLives struct {
	mu      sync.Mutex
	watches sync.WaitGroup
	longest time.Duration // until nothing was left
	left    []string      // what was left when the time was over
}

// newLifeMark of a member's life that is about to begin, which the programs that it starts are to
// inherit.
func newLifeMark(name string) string {
	return fmt.Sprintf("%s=%s-%d", lifeVariable, name, rand.Uint64())
}

// watchLife sees what a life leaves behind that has ended when done is closed.
func (l *memberLives) watchLife(mark string, done <-chan struct{}) {
	l.watches.Go(func() {
		<-done
		ended := time.Now()
		left, after := findPrograms(mark), time.Duration(0) // looking takes a while, too
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

// findPrograms are the programs with a mark. Those that have ended, and whose parents have not
// noticed, have none.
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
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline")) // it may have ended since
		found = append(found, filepath.Base(filepath.Dir(path))+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
	}
	return found
}
