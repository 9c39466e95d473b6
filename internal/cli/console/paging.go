package console

import (
	"fmt"

	"github.com/troupe-engine/troupe/api/client"
	"github.com/troupe-engine/troupe/api/wire"
)

// PagingFlags selects the printed part of a list.
type PagingFlags struct {
	Limit  int    `default:"50" help:"Maximum number of items (${default})."`
	All    bool   `xor:"part" help:"List all items."`
	Cursor string `xor:"part" help:"Cursor printed with the previous page."`
}

// ReadPage reads a part of a list. If more follows, the page's Next is the cursor for the next
// part.
func ReadPage[T any](f PagingFlags, read func(client.Paging) (*wire.Page[T], error)) (*wire.Page[T], error) {
	if f.Limit < 1 {
		return nil, NewUsageError("--limit %d: use at least 1, or --all", f.Limit)
	}
	all := &wire.Page[T]{Items: []T{}, Next: f.Cursor}
	for {
		size := PageSize
		if !f.All {
			size = min(f.Limit-len(all.Items), PageSize)
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

// PrintPage prints a part of a list, and a note if there is more.
func PrintPage[T any](a *App, f OutputFlag, p *wire.Page[T], t Table, row func(*T) []string) error {
	if f.IsJSON() {
		return PrintJSON(a.Stdout, p)
	}
	for i := range p.Items {
		t.Rows = append(t.Rows, row(&p.Items[i]))
	}
	if err := t.WriteRows(a.Stdout); err != nil {
		return err
	}
	if p.Next != "" {
		fmt.Fprintf(a.Stderr, "More items follow. Next page: --cursor %s. All items: --all.\n", SanitizeText(p.Next))
	}
	return nil
}
