//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestListsOfTwoStoresAreOneTableByRoute(t *testing.T) {
	measured := `{"workload":"lists","store":"sqlite","n":200,"extra":{"/v1/tasks?":1.25,"/v1/tasks?ended_from=2026-11-25T00%3A26%3A18Z&limit=5":2,"/v1/tasks?limit=500&cursor=abc":3}}
{"workload":"lists","store":"postgres","n":1000,"extra":{"/v1/tasks?":4,"/v1/tasks?limit=500&cursor=xyz":5,"/v1/queues":6}}`
	var out strings.Builder
	require.NoError(t, listsTable(strings.NewReader(measured), &out))
	require.Equal(t, "| route | sqlite, 200 tasks | postgres, 1000 tasks |\n|---|--:|--:|\n"+
		"| `/v1/queues` | – | 6.0 ms |\n| `/v1/tasks?ended_from=…&limit=5` | 2.0 ms | – |\n| "+
		"`/v1/tasks?limit=500`, page 101 | 3.0 ms | 5.0 ms |\n| `/v1/tasks` | 1.2 ms | 4.0 ms |\n",
		out.String())
}
