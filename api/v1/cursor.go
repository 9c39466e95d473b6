package v1

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Paging holds the parameters of every list.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"1000" doc:"next of the page before; absent for the first page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"how many items at most"`
}

// listCursor is a position in a list: the number it is sorted by, and a name that orders equal
// numbers. Clients send it back unchanged.
type listCursor struct {
	at   int64
	name string
}

func (c listCursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.at, 10) + " " + c.name))
}

// parseCursor reads the cursor. ok is false for the first page.
func (p *Paging) parseCursor() (c listCursor, ok bool, err error) {
	if p.Cursor == "" {
		return c, false, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	number, name, found := strings.Cut(string(text), " ")
	if err == nil && found {
		c.name = name
		c.at, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || !found {
		return c, false, noCursor()
	}
	return c, true, nil
}

// historyCursor returns the cursor for a position in a task's history.
func historyCursor(p flow.Place) string {
	return listCursor{p.Seq, strconv.Itoa(p.Index) + "." + strconv.Itoa(p.Beginning)}.String()
}

// parseHistoryCursor parses the result of historyCursor.
func (p *Paging) parseHistoryCursor() (at flow.Place, err error) {
	c, ok, err := p.parseCursor()
	if err != nil || !ok {
		return at, err
	}
	at.Seq = c.at
	if n, err := fmt.Sscanf(c.name, "%d.%d", &at.Index, &at.Beginning); err != nil || n != 2 || at.Seq < 0 || at.Index < 0 {
		return at, noCursor()
	}
	return at, nil
}

func noCursor() error {
	return newInvalidError("query.cursor",
		"send the next of the page before as it is, with the same other parameters",
		"the cursor is none of ours")
}

// cutPage returns one page of a list that may have one more item, and reports whether it has.
func cutPage[T any](list []T, limit int) (page []T, more bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}
