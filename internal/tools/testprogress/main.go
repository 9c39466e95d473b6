// Command testprogress reads the output of `go test -json` and prints it as Go's own summary, one
// line per package as soon as the package ends. While no package ends, it prints every 20 seconds
// how far the run is and which tests are running.
//
// It prints the output of failed tests at once, and that of passed tests only with -v. It exits
// with 1 if a package failed or if its input has another format, so a pipe needs `set -o pipefail`
// only for go test itself.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// quietest is the maximal time without output.
const quietest = 20 * time.Second

func main() {
	verbose := flag.Bool("v", false, "print the output of passed tests, too")
	flag.Parse()
	r := newReport(time.Now(), *verbose)
	lines := make(chan []byte)
	read := make(chan error, 1)
	go func() {
		read <- sendLines(os.Stdin, lines)
		close(lines)
	}()
	printProgress(r, lines, os.Stdout)
	if err := <-read; err != nil {
		fmt.Fprintln(os.Stderr, "testprogress: read the events of go test:", err)
		os.Exit(1)
	}
	if r.hasFailures() {
		fmt.Println("FAIL")
		os.Exit(1)
	}
}

// sendLines sends each line of a reader, however long it is.
func sendLines(from io.Reader, lines chan<- []byte) error {
	in := bufio.NewReaderSize(from, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			lines <- line
		}
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
	}
}

// printProgress prints the report's text for each line, and the progress whenever nothing was
// printed for a while.
func printProgress(r *runReport, lines <-chan []byte, out io.Writer) {
	ticker := time.NewTicker(quietest)
	defer ticker.Stop()
	for {
		select {
		case line, open := <-lines:
			if !open {
				return
			}
			if text := r.addLine(line); text != "" {
				fmt.Fprint(out, text)
				ticker.Reset(quietest)
			}
		case now := <-ticker.C:
			fmt.Fprint(out, r.describeProgress(now))
		}
	}
}

// testEvent is a line of `go test -json` (see `go doc test2json`).
type testEvent struct {
	Time       time.Time
	Action     string
	Package    string
	ImportPath string // set for a package that is being built
	Test       string
	Output     string
}

// decodeEvent returns the event of a line; ok is false for text that go test printed beside its
// events.
func decodeEvent(line []byte) (e testEvent, ok bool) {
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Action != ""
}
