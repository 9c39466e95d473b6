package job_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/troupe-engine/troupe/job"
)

func TestNumbersOfAJobAreAddedUpByNameAndLabels(t *testing.T) {
	ctx := job.With(t.Context(), job.Job{}, nil)
	require.Nil(t, job.Told(ctx))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() { job.Count(ctx, "rows", 2, map[string]string{"table": "a"}) })
	}
	all.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop()
	job.Count(inner, "rows", 1, nil)
	job.Tell(inner, job.Number{Name: "rows", Count: 3, Sum: 9, Last: 4})
	require.JSONEq(t,
		`[{"name":"rows","labels":{"table":"a"},"count":4,"sum":8,"last":2},{"name":"rows","count":4,"sum":10,"last":4}]`,
		string(job.Told(ctx)))
}

func TestInvalidNumbersAreIgnored(t *testing.T) {
	ctx := job.With(t.Context(), job.Job{}, nil)
	job.Count(ctx, "", 1, nil)
	job.Count(ctx, "a\xff", 1, nil)
	job.Count(ctx, "a", math.NaN(), nil)
	job.Count(ctx, "a", math.Inf(1), nil)
	job.Tell(ctx, job.Number{Name: "a", Count: -1, Sum: 1})
	job.Count(t.Context(), "a", 1, nil)
	require.Nil(t, job.Told(t.Context()), "elsewhere nobody hears it")
	job.Count(ctx, "a", math.MaxFloat64, nil)
	job.Count(ctx, "a", math.MaxFloat64, nil)
	require.JSONEq(t, `[{"name":"a","count":1,"sum":1.7976931348623157e308,"last":1.7976931348623157e308}]`, string(job.Told(ctx)))
}

func TestNumbersOfAJobAreBounded(t *testing.T) {
	ctx := job.With(t.Context(), job.Job{}, nil)
	for i := range 5000 {
		job.Count(ctx, fmt.Sprintf("%d %s", i%500, strings.Repeat("x", i%50*100)), 1, nil)
	}
	var list []job.Number
	require.NoError(t, json.Unmarshal(job.Told(ctx), &list))
	require.LessOrEqual(t, len(list), 100)
	require.Less(t, len(job.Told(ctx)), 64<<10, "which is what the engine keeps")
	require.EqualValues(t, 10, list[0].Count, "those that are known go on being counted")
}
