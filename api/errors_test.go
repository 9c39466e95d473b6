package api

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/engine"
	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/types"
	"github.com/troupe-engine/troupe/persistence"
)

func TestAnOutageOfTheStoreAsksForARetry(t *testing.T) {
	err := fmt.Errorf("read a flow: %w", persistence.ErrUnavailable)
	require.Equal(t, http.StatusServiceUnavailable, Judge(err).Status)
	require.Equal(t, "the store is not available; try again in a moment", Judge(err).Text())
}

func TestAnErrorOfAnotherMemberIsAnsweredLikeOurs(t *testing.T) {
	for _, err := range []error{engine.ErrUnavailable, context.DeadlineExceeded, flow.Errorf(flow.Conflict, "it has ended"),
		&flow.BadInputs{Problems: types.Problems{{Path: []string{"n"}, Msg: "is missing"}}}} {
		b, wrong := engine.Marshal(&engine.Refusal{Err: err})
		require.NoError(t, wrong)
		m, wrong := engine.Unmarshal(b)
		require.NoError(t, wrong)
		require.Equal(t, Judge(err), Judge(m.(*engine.Refusal).Err))
	}
}

func TestTheAnswerToALimitNamesItsFlags(t *testing.T) {
	require.Contains(t, Judge(flow.Errorf(flow.Limit, "the task has too many steps")).Hint,
		"start the server with a higher one (--max-…, see troupe serve --help)")
	require.Contains(t, Judge(&http.MaxBytesError{Limit: 5}).Hint, "--max-value")
}
