//go:build unix

package pgtest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// actAsParent makes the test binary start a server, report it, and wait to be killed.
const actAsParent = "PGTEST_ACT_AS_PARENT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(actAsParent); dir != "" {
		s, err := StartServer(context.Background(), dir)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println(s.Pid(), s.folder.path)
		select {}
	}
	os.Exit(Main(m))
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func text(t *testing.T, conn *pgx.Conn, query string) string {
	t.Helper()
	var s string
	require.NoError(t, conn.QueryRow(t.Context(), query).Scan(&s))
	return s
}

func startServer(t *testing.T) *Server {
	t.Helper()
	s, err := StartServer(t.Context(), "")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	return s
}

func TestEveryCallGetsAnEmptyDatabaseOfItsOwn(t *testing.T) {
	a, b := connect(t, DSN(t)), connect(t, DSN(t))
	_, err := a.Exec(t.Context(), "CREATE TABLE x ()")
	require.NoError(t, err)
	_, err = b.Exec(t.Context(), "CREATE TABLE x ()")
	require.NoError(t, err)
}

func TestDatabaseIsDroppedDespiteOpenConnections(t *testing.T) {
	var forgotten *pgx.Conn
	var name string
	t.Run("a test that forgets its connection", func(t *testing.T) {
		var err error
		forgotten, err = pgx.Connect(t.Context(), DSN(t))
		require.NoError(t, err)
		name = text(t, forgotten, "SELECT current_database()")
	})
	defer forgotten.Close(t.Context())
	conn := connect(t, DSN(t))
	require.Equal(t, "0", text(t, conn, "SELECT count(*)::text FROM pg_database WHERE datname = '"+name+"'"))
}

func TestReusedDatabaseIsEmpty(t *testing.T) {
	const id = "SELECT oid::text FROM pg_database WHERE datname = current_database()"
	var before string
	t.Run("a test that leaves much behind", func(t *testing.T) {
		conn := connect(t, DSN(t))
		before = text(t, conn, id)
		name := text(t, conn, "SELECT current_database()")
		for _, statement := range []string{
			"CREATE TABLE x ()",
			"CREATE SCHEMA other CREATE TABLE y () CREATE VIEW z AS SELECT FROM y",
			"CREATE TYPE mood AS ENUM ('good')",
			"CREATE FUNCTION one() RETURNS int LANGUAGE sql AS 'SELECT 1'",
			"REVOKE ALL ON SCHEMA public FROM PUBLIC", "ALTER DATABASE " + name + " SET work_mem = '77MB'",
		} {
			_, err := conn.Exec(t.Context(), statement)
			require.NoError(t, err)
		}
	})
	conn := connect(t, DSN(t))
	require.Equal(t, before, text(t, conn, id))
	require.Equal(t, "4MB", text(t, conn, "SHOW work_mem"))
	require.Equal(t, "public", text(t, conn,
		"SELECT string_agg(nspname, ' ') FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname "+
			"<> 'information_schema'"))
	for _, catalog := range []string{"pg_class WHERE relnamespace", "pg_type WHERE typnamespace", "pg_proc WHERE pronamespace"} {
		require.Equal(t, "0", text(t, conn, "SELECT count(*)::text FROM "+catalog+" = 'public'::regnamespace"), catalog)
	}
	require.Equal(t, "true", text(t, conn,
		"SELECT (has_schema_privilege('public', 'USAGE') AND nspowner = "+
			"'pg_database_owner'::regrole)::text FROM pg_namespace WHERE nspname = 'public'"))
}

func TestSettingsAreTheDurableDefaults(t *testing.T) {
	conn := connect(t, DSN(t))
	for setting, want := range map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
		"max_connections": "1000", "listen_addresses": "127.0.0.1",
	} {
		require.Equal(t, want, text(t, conn, "SHOW "+setting), setting)
	}
}

func TestAGivenServerIsUsedInsteadOfAPrivateOne(t *testing.T) {
	given := startServer(t)
	t.Setenv(environment, given.DSN("postgres"))
	conn := connect(t, DSN(t))
	require.Equal(t, strconv.Itoa(given.port), text(t, conn, "SHOW port"))
}

func TestCommittedRowsSurviveAKill(t *testing.T) {
	s := startServer(t)
	conn := connect(t, s.DSN("postgres"))
	_, err := conn.Exec(t.Context(), "CREATE TABLE x AS SELECT 'kept' AS v")
	require.NoError(t, err)
	pid, children := s.Pid(), childrenOf(s.Pid())
	require.NotEmpty(t, children)

	require.NoError(t, s.Kill())
	require.Zero(t, s.Pid())
	require.Error(t, conn.Ping(t.Context()))
	for _, child := range children {
		require.True(t, child.hasEnded(), "child %d", child.pid)
	}

	require.NoError(t, s.Restart(t.Context()))
	require.NotEqual(t, pid, s.Pid())
	require.Equal(t, "kept", text(t, connect(t, s.DSN("postgres")), "SELECT v FROM x"))
}

// A child that the server started at the moment of the kill would prevent the next server from
// starting.
func TestKillDuringConnectsLeavesNoChild(t *testing.T) {
	s := startServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if conn, err := pgx.Connect(ctx, s.DSN("postgres")); err == nil {
					conn.Close(ctx)
				}
			}
		})
	}
	defer callers.Wait()
	defer cancel()
	for range 5 {
		require.NoError(t, s.Kill())
		require.NoError(t, s.Restart(t.Context()))
	}
}

func TestARunningServerCanBeRestarted(t *testing.T) {
	s := startServer(t)
	pid := s.Pid()
	require.NoError(t, s.Restart(t.Context()))
	require.NotEqual(t, pid, s.Pid())
	connect(t, s.DSN("postgres"))
}

func TestAnotherAddressIsServedFromTheNextStartOn(t *testing.T) {
	s := startServer(t)
	require.NoError(t, s.ListenOn("127.0.0.77"))
	require.NoError(t, s.Restart(t.Context()))
	conn := connect(t, fmt.Sprintf("postgres://postgres@127.0.0.77:%d/postgres?sslmode=disable", s.Port()))
	require.Equal(t, "127.0.0.1,127.0.0.77", text(t, conn, "SHOW listen_addresses"))
	connect(t, s.DSN("postgres"))
}

func TestStopLeavesNothing(t *testing.T) {
	s := startServer(t)
	postmaster, err := readProcess(s.Pid())
	require.NoError(t, err)
	require.NoError(t, s.Stop())
	require.True(t, postmaster.hasEnded())
	require.NoDirExists(t, s.folder.path)
	require.NoError(t, s.Stop(), "a second stop does nothing")
	require.Error(t, s.Restart(t.Context()))
}

func TestCPUTimeGrowsWithWorkAndKeepsThatOfEndedConnections(t *testing.T) {
	s := startServer(t)
	before, err := s.StatProcesses()
	require.NoError(t, err)
	conn := connect(t, s.DSN("postgres"))
	_, err = conn.Exec(t.Context(), "SELECT sum(sqrt(n)) FROM generate_series(1, 3000000) n")
	require.NoError(t, err)
	worked, err := s.StatProcesses()
	require.NoError(t, err)
	require.Greater(t, worked, before+100*time.Millisecond)
	require.NoError(t, conn.Close(t.Context()))
	require.Eventually(t, func() bool {
		after, err := s.StatProcesses()
		return err == nil && after >= worked
	}, time.Minute, 10*time.Millisecond)
}

func TestKilledProcessLeavesNoServerAndNoFolder(t *testing.T) {
	dir, err := os.MkdirTemp("", "parent-") // the server's user cannot enter t.TempDir
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))

	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), actAsParent+"="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	var pid int
	var folder string
	_, err = fmt.Sscan(line, &pid, &folder)
	require.NoError(t, err, line)
	postmaster, err := readProcess(pid)
	require.NoError(t, err)
	processes := append(childrenOf(pid), postmaster)

	removeAbandoned(dir)
	require.DirExists(t, filepath.Join(folder, "data"), "a folder in use is left alone")

	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	for _, p := range processes {
		require.Eventually(t, p.hasEnded, time.Minute, 10*time.Millisecond, "process %d", p.pid)
	}
	removeAbandoned(dir)
	require.NoDirExists(t, folder)
}

func TestProgramsAreFound(t *testing.T) {
	install := func(t *testing.T, dir string) string {
		t.Helper()
		require.NoError(t, os.MkdirAll(dir, 0o755))
		for _, name := range []string{"initdb", "postgres"} {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755))
		}
		return dir
	}
	for name, tt := range map[string]func(t *testing.T, root, path string) (want string){
		"in PATH": func(t *testing.T, root, path string) string {
			install(t, filepath.Join(root, "17", "bin"))
			return install(t, path)
		},
		"behind links in PATH": func(t *testing.T, root, path string) string {
			really := install(t, filepath.Join(root, "elsewhere"))
			for _, name := range []string{"initdb", "postgres"} {
				require.NoError(t, os.Symlink(filepath.Join(really, name), filepath.Join(path, name)))
			}
			return really
		},
		"where pg_config says": func(t *testing.T, root, path string) string {
			install(t, filepath.Join(root, "17", "bin"))
			said := install(t, filepath.Join(root, "said"))
			script := "#!/bin/sh\necho " + said + "\n"
			require.NoError(t, os.WriteFile(filepath.Join(path, "pg_config"), []byte(script), 0o755))
			return said
		},
		"where Debian puts them, newest first": func(t *testing.T, root, _ string) string {
			install(t, filepath.Join(root, "9.6", "bin"))
			install(t, filepath.Join(root, "15", "bin"))
			return install(t, filepath.Join(root, "17", "bin"))
		},
		"not in a folder that has only half of them": func(t *testing.T, root, _ string) string {
			half := install(t, filepath.Join(root, "17", "bin"))
			require.NoError(t, os.Remove(filepath.Join(half, "initdb")))
			return install(t, filepath.Join(root, "15", "bin"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, path := t.TempDir(), t.TempDir()
			t.Setenv("PATH", path)
			want := tt(t, root, path)
			got, err := findPrograms(filepath.Join(root, "*", "bin"))
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

func TestMissingProgramsAreOneClearLine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := findPrograms(filepath.Join(t.TempDir(), "*", "bin"))
	require.ErrorIs(t, err, ErrNoPrograms)
	require.NotContains(t, err.Error(), "\n")
	require.True(t, strings.Contains(err.Error(), "install") && strings.Contains(err.Error(), environment))
}
