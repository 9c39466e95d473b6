package postgres_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/internal/testing/pgtest"
	"github.com/troupe-engine/troupe/persistence/postgres"
)

// pooler shares connections to a server as PgBouncer does: for one transaction, or for as long as
// its client stays.
type pooler struct {
	t       *testing.T
	dsn     string
	keeps   bool // a client keeps its connection
	strict  bool // settings of clients are refused
	servers chan *pgconn.HijackedConn
	work    sync.WaitGroup
}

// startPooler listens until the test ends, and returns its DSN.
func startPooler(t *testing.T, p *pooler) string {
	p.t, p.dsn, p.servers = t, pgtest.DSN(t), make(chan *pgconn.HijackedConn, 100)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = l.Close()
		p.work.Wait()
		for close(p.servers); len(p.servers) > 0; {
			_ = (<-p.servers).Conn.Close()
		}
	})
	p.work.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			p.work.Go(func() { p.serve(client) })
		}
	})
	config, err := pgx.ParseConfig(p.dsn)
	require.NoError(t, err)
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", l.Addr(), config.Database)
}

// server returns a connection that no client uses.
func (p *pooler) server() *pgconn.HijackedConn {
	select {
	case s := <-p.servers:
		return s
	default:
	}
	conn, err := pgconn.Connect(context.Background(), p.dsn)
	if err != nil {
		return nil
	}
	s, err := conn.Hijack()
	if err != nil {
		return nil
	}
	return s
}

// serve serves a client until it disconnects.
func (p *pooler) serve(conn net.Conn) {
	defer conn.Close()
	client := pgproto3.NewBackend(conn, conn)
	hello, err := client.ReceiveStartupMessage()
	if err != nil {
		return
	}
	if start, ok := hello.(*pgproto3.StartupMessage); p.strict && ok && start.Parameters["lock_timeout"] != "" {
		client.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "08P01", Message: "unsupported startup parameter: lock_timeout"})
		_ = client.Flush() // the client may be gone
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{ProcessID: 1, SecretKey: []byte{0, 0, 0, 1}})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	var server *pgconn.HijackedConn
	defer func() {
		if server != nil {
			p.servers <- server
		}
	}()
	for client.Flush() == nil {
		m, err := client.Receive()
		if _, leaves := m.(*pgproto3.Terminate); err != nil || leaves {
			return
		}
		if server == nil {
			if server = p.server(); server == nil {
				return
			}
		}
		server.Frontend.Send(m)
		switch m.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue
		}
		status := p.pass(server, client)
		if status == 0 {
			return
		}
		if status == 'I' && !p.keeps {
			p.servers <- server
			server = nil
		}
	}
}

// pass forwards a whole response of the server and returns the transaction state after it; 0 = the
// connection is gone.
func (p *pooler) pass(server *pgconn.HijackedConn, client *pgproto3.Backend) byte {
	if server.Frontend.Flush() != nil {
		return 0
	}
	for {
		m, err := server.Frontend.Receive()
		if err != nil {
			return 0
		}
		client.Send(m)
		if ready, is := m.(*pgproto3.ReadyForQuery); is {
			return ready.TxStatus
		}
		if client.Flush() != nil { // m is valid until the next one
			return 0
		}
	}
}

func TestAPoolerThatSharesConnectionsBetweenTransactionsIsRefused(t *testing.T) {
	_, err := postgres.Open(t.Context(), startPooler(t, &pooler{}), postgres.Options{})
	require.ErrorContains(t, err, "a pooler between this program and the server shares "+
		"connections between transactions (PgBouncer's pool_mode = transaction or statement)")
	require.ErrorContains(t, err, "use pool_mode = session, or connect to the server directly")
}

func TestAPoolerThatKeepsConnectionsForItsClientsIsAccepted(t *testing.T) {
	s, err := postgres.Open(t.Context(), startPooler(t, &pooler{keeps: true}), postgres.Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

func TestAPoolerThatRefusesSettingsIsNamed(t *testing.T) {
	_, err := postgres.Open(t.Context(), startPooler(t, &pooler{keeps: true, strict: true}), postgres.Options{})
	require.ErrorContains(t, err, "a pooler between this program and the server refuses a setting")
	require.Equal(t, 1, strings.Count(err.Error(), "ignore_startup_parameters = statement_timeout, lock_timeout,"))
}
