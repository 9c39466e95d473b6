package route

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	"github.com/troupe-engine/troupe/flow"
)

// Paging holds the parameters that all lists have.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"1000" doc:"Value of next in the previous page; absent for the first page."`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of items."`
}

// Cursor is a position in a list: a sort number, and a name that orders equal numbers. Clients
// return it unchanged.
type Cursor struct {
	At   int64
	Name string
}

func (c Cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(c.At, 10) + " " + c.Name))
}

// ParseCursor reads the cursor. ok is false for the first page.
func (p *Paging) ParseCursor() (c Cursor, ok bool, err error) {
	if p.Cursor == "" {
		return c, false, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	number, name, found := strings.Cut(string(text), " ")
	if err == nil && found {
		c.Name = name
		c.At, err = strconv.ParseInt(number, 10, 64)
	}
	if err != nil || !found {
		return c, false, noCursor()
	}
	return c, true, nil
}

// HistoryCursor returns the cursor for a position in a task's history.
func HistoryCursor(p flow.Place) string {
	return Cursor{p.Seq, strconv.Itoa(p.Index) + "." + strconv.Itoa(p.Beginning)}.String()
}

// ParseHistoryCursor parses the result of HistoryCursor.
func (p *Paging) ParseHistoryCursor() (at flow.Place, err error) {
	c, ok, err := p.ParseCursor()
	if err != nil || !ok {
		return at, err
	}
	at.Seq = c.At
	if n, err := fmt.Sscanf(c.Name, "%d.%d", &at.Index, &at.Beginning); err != nil || n != 2 || at.Seq < 0 || at.Index < 0 {
		return at, noCursor()
	}
	return at, nil
}

func noCursor() error {
	return NewInvalidError("query.cursor",
		"send next of the previous page unchanged, with the same other parameters",
		"the cursor is not one that the server returned")
}

// CutPage returns at most limit items of a list, and reports whether the list has more.
func CutPage[T any](list []T, limit int) (page []T, more bool) {
	if len(list) > limit {
		return list[:limit], true
	}
	return list, false
}
