package pocketflowhttp

import (
	"net/http"
	"strconv"

	"github.com/troupe-engine/troupe/api"
)

// queryNumber reads a number from the query. Any other value counts as absent.
func queryNumber(r *http.Request, name string, otherwise int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil {
		return otherwise
	}
	return n
}

// parsePaging reads the requested page. A page has at most maxPageSize rows.
func parsePaging(r *http.Request) (page, size int) {
	page, size = queryNumber(r, "page", 1), queryNumber(r, "page_size", 10)
	if page < 1 || page > maxPages {
		page = 1
	}
	if size < 1 {
		size = 10
	}
	return page, min(size, maxPageSize)
}

const (
	maxPageSize = 1_000
	maxPages    = 1 << 40
)

type graphPage[T any] struct {
	Data  []T `json:"data"`
	Total int `json:"total"`
	Page  int `json:"page"`
	Size  int `json:"size"`
}

func writePage[T any](w http.ResponseWriter, rows []T, total, page, size int) error {
	if rows == nil {
		rows = []T{}
	}
	api.WriteJSON(w, http.StatusOK, graphPage[T]{rows, total, page, size})
	return nil
}
