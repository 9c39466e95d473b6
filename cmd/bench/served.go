//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// servedMember is a member in its own process, used over HTTP like any member.
type servedMember struct {
	cmd  *exec.Cmd
	url  string
	http *http.Client
	rest sync.WaitGroup // waits for the goroutine that reads the output
}

// serveTroupe starts `troupe serve` with a store of its own and the given number of concurrent
// programs.
func (b *benchRun) serveTroupe(programs int) (*servedMember, error) {
	path, err := b.troupeBinary()
	if err != nil {
		return nil, err
	}
	store, err := b.ownStore()
	if err != nil {
		return nil, err
	}
	return b.startServed(path, "serve", "--listen", "127.0.0.1:0", "--store", store, "--log-level", "error",
		"--allow-scripts", "--script-dir", b.dir, "--max-scripts", strconv.Itoa(programs))
}

// serveFuncs starts this program as a member with Go functions.
func (b *benchRun) serveFuncs() (*servedMember, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	store, err := b.ownStore()
	if err != nil {
		return nil, err
	}
	return b.startServed(self, "-workload", "functions", "-store", store)
}

// serveFunctions serves the API of a member with Go functions until ctx ends.
func (b *benchRun) serveFunctions() error {
	if err := b.serveAPI(b.ctx); err != nil {
		return err
	}
	fmt.Println("serving", b.url)
	<-b.ctx.Done()
	return nil
}

// troupeBinary returns the path of the binary. It builds the binary if no path was given.
func (b *benchRun) troupeBinary() (string, error) {
	if b.o.troupe != "" {
		return b.o.troupe, nil
	}
	path := filepath.Join(b.dir, "troupe")
	build := exec.CommandContext(b.ctx, "go", "build", "-o", path, "github.com/troupe-engine/troupe/cmd/troupe")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return "", fmt.Errorf("building troupe: %w (-troupe names one that is there)", err)
	}
	return path, nil
}

// ownStore returns a new empty store.
func (b *benchRun) ownStore() (string, error) {
	if b.o.store == "sqlite" {
		b.databases++
		return "sqlite:" + filepath.Join(b.dir, fmt.Sprintf("own-%d.db", b.databases)), nil
	}
	return b.newDatabase()
}

func (b *benchRun) startServed(program string, args ...string) (*servedMember, error) {
	s := &servedMember{cmd: exec.Command(program, args...), http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: atOnce}}}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	for _, word := range strings.Fields(line) {
		// the address of the pages follows the text
		if s.url == "" && strings.HasPrefix(word, "http://") {
			s.url = word
		}
	}
	s.rest.Go(func() { _, _ = io.Copy(io.Discard, lines) })
	if s.url == "" {
		return nil, errors.Join(fmt.Errorf("%s did not say where it serves: %.80q", program, line), err, s.stopMember())
	}
	return s, nil
}

func (s *servedMember) stopMember() error {
	s.http.CloseIdleConnections()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	s.rest.Wait()
	return s.cmd.Wait()
}

// sendRequest sends a request, retries while the member is too busy, and decodes the answer into
// to.
func (s *servedMember) sendRequest(ctx context.Context, method, path, contentType string, body []byte, to any) error {
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		status, answer, err := s.sendOnce(ctx, method, path, contentType, body)
		switch {
		case err != nil:
			return err
		case status == http.StatusTooManyRequests:
			time.Sleep(wait)
			continue
		case status >= 300:
			return fmt.Errorf("%s %s: %d: %.300s", method, path, status, answer)
		}
		return json.Unmarshal(answer, to)
	}
}

func (s *servedMember) sendOnce(ctx context.Context, method, path, contentType string, body []byte) (status int, answer []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := s.http.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

func (s *servedMember) getJSON(ctx context.Context, path string, to any) error {
	return s.sendRequest(ctx, http.MethodGet, path, "", nil, to)
}

// rssMB returns the resident memory of the member.
func (s *servedMember) rssMB() float64 { return rssOf(strconv.Itoa(s.cmd.Process.Pid)) }
