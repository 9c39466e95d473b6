package pocketflowhttp

import (
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPaging(t *testing.T) {
	for query, want := range map[string][2]int{
		"": {1, 10}, "page=3&page_size=7": {3, 7}, "page=-1&page_size=abc": {1, 10}, "page=0&page_size=0": {1, 10},
		"page_size=100000000": {1, maxPageSize}, "page=9223372036854775807": {1, 10},
	} {
		page, size := parsePaging(httptest.NewRequest("GET", "/?"+query, nil))
		require.Equal(t, want, [2]int{page, size}, query)
	}
}
