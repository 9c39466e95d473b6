//go:build unix

package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/troupe-engine/troupe/internal/testing/ports"
)

const (
	startTimeout = 60 * time.Second // includes recovery after a kill
	stopTimeout  = 20 * time.Second
)

// Server is a PostgreSQL server with a folder of its own. Its methods are safe for concurrent use.
type Server struct {
	bin    string
	owner  *syscall.Credential
	folder *serverFolder
	port   int
	most   atomic.Int32 // maximal number of connections

	elsewhere atomic.Value // string: an additional address to listen on

	mu         sync.Mutex
	postmaster *postmaster // nil while it is down
	stopped    bool
}

// StartServer starts a new server whose folder is below dir; "" means the default folder for
// temporary files. For measurements, dir should be on a real disk. The caller must call Stop.
func StartServer(ctx context.Context, dir string) (*Server, error) {
	bin, err := findPrograms(debianBins)
	if err != nil {
		return nil, err
	}
	owner, err := serverUser()
	if err != nil {
		return nil, err
	}
	if dir == "" {
		dir = os.TempDir()
	}
	removeAbandoned(dir)
	folder, err := newFolder(dir, owner)
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, owner: owner, folder: folder}
	if err := s.createServer(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) createServer(ctx context.Context) error {
	var err error
	if s.port, err = freePort(); err != nil {
		return err
	}
	initdb := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "--pgdata="+s.dataDir(), "--username=postgres",
		"--auth=trust", "--encoding=UTF8", "--no-locale",
		"--no-sync") // only for the files of initdb; later commits are synced
	s.prepareCommand(initdb)
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: initdb: %w\n%s", err, out)
	}
	return s.startServer(ctx)
}

func freePort() (int, error) {
	port, err := ports.Free()
	if err != nil {
		return 0, fmt.Errorf("pgtest: %w", err)
	}
	return port, nil
}

// prepareCommand sets the unprivileged user, the folder, and an environment without the caller's
// PGDATA and PGPORT.
func (s *Server) prepareCommand(cmd *exec.Cmd) {
	cmd.Dir = s.folder.path
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.owner}
}

func (s *Server) dataDir() string { return filepath.Join(s.folder.path, "data") }

// Log returns the path of the server log. Stop removes the file.
func (s *Server) Log() string { return filepath.Join(s.folder.path, "server.log") }

// LimitConnections sets the maximal number of connections from the next start on. The default is
// 1,000.
func (s *Server) LimitConnections(n int) { s.most.Store(int32(n)) }

// ListenOn sets an address to listen on besides 127.0.0.1, from the next start on. Every client
// that can reach the address may connect. DSNs still use 127.0.0.1.
func (s *Server) ListenOn(address string) error {
	rules, err := os.OpenFile(filepath.Join(s.dataDir(), "pg_hba.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("pgtest: let in others: %w", err)
	}
	defer rules.Close()
	if _, err := fmt.Fprintln(rules, "host all all samenet trust"); err != nil {
		return fmt.Errorf("pgtest: let in others: %w", err)
	}
	s.elsewhere.Store("," + address)
	return nil
}

// Port returns the port of all addresses.
func (s *Server) Port() int { return s.port }

// DSN returns the DSN of a database of this server; "postgres" always exists.
func (s *Server) DSN(db string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, db)
}

// Pid returns the id of the server's first process; 0 while it is down.
func (s *Server) Pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster == nil {
		return 0
	}
	return s.postmaster.process.Pid
}

// Kill ends all processes of the server with SIGKILL, like a crash of its machine, and returns when
// they have ended. Committed data is available after Restart.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster == nil {
		return nil
	}
	err := s.postmaster.killServer()
	s.postmaster = nil
	return err
}

// Freeze suspends all processes of the server, like a hanging machine: connections stay open, but
// get no answers. Thaw resumes the processes. The server must be running.
func (s *Server) Freeze() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postmaster.freeze()
}

// Thaw resumes a frozen server.
func (s *Server) Thaw() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.postmaster.thaw()
}

// Restart starts the server with the same data, address and port. It shuts a running server down
// first.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return errors.New("pgtest: the server was stopped and its folder is gone")
	}
	if err := s.shutDown(); err != nil {
		return err
	}
	return s.startServer(ctx)
}

// Stop shuts the server down and removes its folder. A second call does nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	return errors.Join(s.shutDown(), s.folder.removeAll())
}

// StatProcesses returns the CPU time used by the server's processes since its last start, including
// ended ones.
func (s *Server) StatProcesses() (time.Duration, error) {
	pid := s.Pid()
	if pid == 0 {
		return 0, errors.New("pgtest: the server is down")
	}
	return CPUOf(pid)
}

// CPUOf returns the CPU time used by a process, its children, and the children it has reaped.
func CPUOf(pid int) (time.Duration, error) {
	first, err := readProcess(pid)
	if err != nil {
		return 0, fmt.Errorf("pgtest: CPU time of a process: %w", err)
	}
	cpu := first.own + first.reaped
	for _, child := range childrenOf(pid) {
		cpu += child.own + child.reaped
	}
	return cpu, nil
}

func (s *Server) shutDown() error {
	if s.postmaster == nil {
		return nil
	}
	err := s.postmaster.shutDown()
	s.postmaster = nil
	return err
}

// startServer starts the server and returns when it answers.
func (s *Server) startServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	log, err := os.OpenFile(s.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("pgtest: open the server's log: %w", err)
	}
	defer log.Close()
	elsewhere, _ := s.elsewhere.Load().(string)
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.dataDir(),
		"-c", "listen_addresses=127.0.0.1"+elsewhere, "-c", "port="+strconv.Itoa(s.port),
		"-c", "unix_socket_directories="+s.socketDir(),
		"-c", "max_connections="+strconv.Itoa(int(cmp.Or(s.most.Load(), 1000))), "-c", "logging_collector=off")
	s.prepareCommand(cmd)
	cmd.Stdout, cmd.Stderr = log, log
	p, err := superviseServer(cmd)
	if err != nil {
		return fmt.Errorf("pgtest: start postgres: %w", err)
	}
	s.postmaster = p
	return s.awaitAnswer(ctx)
}

// socketDir returns the server's folder, or "" for no socket if the path exceeds the kernel's limit
// of 107 bytes.
func (s *Server) socketDir() string {
	if len(s.folder.path)+len("/.s.PGSQL.65535") > 107 {
		return ""
	}
	return s.folder.path
}

func (s *Server) awaitAnswer(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.postmaster.ended:
			s.postmaster = nil
			return fmt.Errorf("pgtest: postgres ended while starting:\n%s", s.logTail())
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("pgtest: postgres does not answer: %w\n%s", err, s.logTail()), s.shutDown())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (s *Server) logTail() []byte {
	const enough = 2000
	log, err := os.ReadFile(s.Log())
	if err != nil {
		return []byte(err.Error())
	}
	return log[max(0, len(log)-enough):]
}
