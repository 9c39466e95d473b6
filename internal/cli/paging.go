package cli

import (
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// pagingFlags selects the part of a list that is shown.
type pagingFlags struct {
	Limit  int    `default:"50" help:"How many at most (${default})."`
	All    bool   `xor:"part" help:"All there are."`
	Cursor string `xor:"part" help:"Go on behind a list that was not all: what that one said."`
}

// readPage reads a part of a list. If more follows, its Next is the cursor to continue with.
func readPage[T any](f pagingFlags, read func(client.Paging) (*wire.Page[T], error)) (*wire.Page[T], error) {
	if f.Limit < 1 {
		return nil, newUsageError("--limit %d: a list has one item at least; --all lists all there are", f.Limit)
	}
	all := &wire.Page[T]{Items: []T{}, Next: f.Cursor}
	for {
		size := pageSize
		if !f.All {
			size = min(f.Limit-len(all.Items), pageSize)
		}
		part, err := read(client.Paging{Cursor: all.Next, Limit: size})
		if err != nil {
			return nil, err
		}
		all.Items, all.Next = append(all.Items, part.Items...), part.Next
		if all.Next == "" || !f.All && len(all.Items) >= f.Limit {
			return all, nil
		}
	}
}

// printPage prints a part of a list, and a note if there is more.
func printPage[T any](a *app, f outputFlag, p *wire.Page[T], t table, row func(*T) []string) error {
	if f.isJSON() {
		return printJSON(a.stdout, p)
	}
	for i := range p.Items {
		t.rows = append(t.rows, row(&p.Items[i]))
	}
	if err := t.writeRows(a.stdout); err != nil {
		return err
	}
	if p.Next != "" {
		fmt.Fprintf(a.stderr, "There is more: --all lists everything, --cursor %s goes on behind these.\n", sanitizeText(p.Next))
	}
	return nil
}
