package postgres

import (
	"errors"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/persistence"
)

func TestAnOutageHasAPlainReason(t *testing.T) {
	coded := func(code string) error { return &pgconn.PgError{Code: code} }
	for reason, err := range map[string]error{
		"its disk is full": coded("53100"),
		"another transaction has locked what is to be written": coded("55P03"),
		"it is read-only":                         coded("25006"),
		"it has no connection to give":            coded("53300"),
		"it lacks a resource":                     coded("53400"),
		"it did not finish in time":               coded("57014"),
		"it is starting or shutting down":         coded("57P01"),
		"its disk or its system reports an error": coded("58030"),
		"it cannot be reached":                    &pgconn.ConnectError{},
		"its connection broke":                    &net.OpError{Err: io.EOF},
		"it ended a transaction that stood still": coded("25P03"),
	} {
		err := wrapError("write a batch", err)
		require.ErrorIs(t, err, persistence.ErrUnavailable, reason)
		require.Equal(t, reason, persistence.ReasonOf(err))
	}
	for _, err := range []error{coded("42P01"), coded("22021"), errors.New("else")} {
		require.NotErrorIs(t, wrapError("write a batch", err), persistence.ErrUnavailable)
	}
}
