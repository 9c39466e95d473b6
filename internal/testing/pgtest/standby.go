//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// StartStandby starts an asynchronous standby of the server, with its own folder and port. The
// caller must call Stop.
func (s *Server) StartStandby(ctx context.Context) (*Server, error) {
	folder, err := newFolder(filepath.Dir(s.folder.path), s.owner)
	if err != nil {
		return nil, err
	}
	standby := &Server{bin: s.bin, owner: s.owner, folder: folder}
	standby.most.Store(s.most.Load())
	if err := standby.startStandby(ctx, s); err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

// startStandby copies the data of a primary and starts the server on the copy.
func (s *Server) startStandby(ctx context.Context, primary *Server) (err error) {
	if s.port, err = freePort(); err != nil {
		return err
	}
	if err := s.copyData(ctx, primary, s.dataDir(), "--write-recovery-conf"); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startServer(ctx)
}

// copyData copies the data of a running server to a folder that this server can read.
func (s *Server) copyData(ctx context.Context, of *Server, to string, more ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "pg_basebackup"),
		append([]string{"--pgdata=" + to, "--checkpoint=fast", "--wal-method=stream", "--no-sync",
			"--dbname=" + of.DSN("postgres")}, more...)...)
	s.prepareCommand(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pgtest: pg_basebackup: %w\n%s", err, out)
	}
	return nil
}

// Synchronize makes a primary acknowledge commits only after a standby has them.
func (s *Server) Synchronize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, statement := range []string{"ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"} {
		if err := execStatement(ctx, s.DSN("postgres"), statement); err != nil {
			return fmt.Errorf("pgtest: replicate synchronously: %w", err)
		}
	}
	for {
		synchronous := false
		if err := s.queryValue(ctx, "SELECT current_setting('synchronous_standby_names') = '*' "+
			"AND EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')",
			&synchronous); err != nil || synchronous {
			return err
		}
		if err := pauseBriefly(ctx); err != nil {
			return fmt.Errorf("pgtest: no standby is synchronous: %w\n%s", err, s.logTail())
		}
	}
}

// AwaitCaughtUp returns when a standby has replayed everything that its primary has committed by
// now.
func (s *Server) AwaitCaughtUp(ctx context.Context, primary *Server) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var lsn string
	if err := primary.queryValue(ctx, "SELECT pg_current_wal_flush_lsn()::text", &lsn); err != nil {
		return err
	}
	for {
		there := false
		if err := s.queryValue(ctx, "SELECT pg_last_wal_replay_lsn() >= '"+lsn+"'::pg_lsn", &there); err != nil || there {
			return err
		}
		if err := pauseBriefly(ctx); err != nil {
			return fmt.Errorf("pgtest: the standby is behind: %w\n%s", err, s.logTail())
		}
	}
}

// Detach disconnects a standby, so that it misses all later commits of its primary.
func (s *Server) Detach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, statement := range []string{"ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"} {
		if err := execStatement(ctx, s.DSN("postgres"), statement); err != nil {
			return fmt.Errorf("pgtest: detach the standby: %w", err)
		}
	}
	for {
		receives := true
		if err := s.queryValue(ctx, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)", &receives); err != nil || !receives {
			return err
		}
		if err := pauseBriefly(ctx); err != nil {
			return fmt.Errorf("pgtest: the standby goes on to receive: %w\n%s", err, s.logTail())
		}
	}
}

// Promote makes a standby a primary.
func (s *Server) Promote(ctx context.Context) error {
	promoted := false
	err := s.queryValue(ctx, "SELECT pg_promote(true, 60)", &promoted)
	if err == nil && !promoted {
		err = errors.New("it stays a standby")
	}
	if err != nil {
		return fmt.Errorf("pgtest: promote the standby: %w\n%s", err, s.logTail())
	}
	return nil
}

// Backup copies the server's current data, for Restore.
func (s *Server) Backup(ctx context.Context) (path string, err error) {
	path = filepath.Join(s.folder.path, fmt.Sprint("backup-", time.Now().UnixNano()))
	return path, s.copyData(ctx, s, path)
}

// Restore kills the server as Kill does and starts it on a copy made by Backup, with the same
// address and timeline. It consumes the copy.
func (s *Server) Restore(ctx context.Context, backup string) error {
	if err := s.Kill(); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(s.dataDir()), os.Rename(backup, s.dataDir())); err != nil {
		return fmt.Errorf("pgtest: restore a backup: %w", err)
	}
	return s.Restart(ctx)
}

// AnyOf returns a DSN that names several servers in the given order.
func AnyOf(database string, servers ...*Server) string {
	hosts := make([]string, len(servers))
	for i, s := range servers {
		hosts[i] = fmt.Sprintf("127.0.0.1:%d", s.port)
	}
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable&target_session_attrs=read-write", strings.Join(hosts, ","), database)
}

// queryValue reads a single value.
func (s *Server) queryValue(ctx context.Context, query string, answer any) error {
	conn, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, query).Scan(answer); err != nil {
		return fmt.Errorf("pgtest: %s: %w", query, err)
	}
	return nil
}

// pauseBriefly waits 10 ms.
func pauseBriefly(ctx context.Context) error {
	select {
	case <-time.After(10 * time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
