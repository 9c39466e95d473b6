package schedule

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// zoneinfo is the time zone database of Go: the one of a host may be older or missing, and members
// must agree.
//
//go:generate sh -c "cp $(go env GOROOT)/lib/time/zoneinfo.zip zoneinfo.zip"
//go:embed zoneinfo.zip
var zoneinfo []byte

// zoneFiles maps names to the files of the database.
var zoneFiles = func() map[string]*zip.File {
	archive, err := zip.NewReader(bytes.NewReader(zoneinfo), int64(len(zoneinfo)))
	if err != nil {
		panic(err) // the data is the same on every host, so a test finds it
	}
	named := map[string]*zip.File{}
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") {
			named[f.Name] = f
		}
	}
	return named
}()

// Zone returns a time zone of the IANA database, such as Europe/Berlin. "" means UTC.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "UTC" {
		return time.UTC, nil
	}
	f := zoneFiles[name]
	if f == nil {
		return nil, fmt.Errorf("there is no time zone %.60q: write one of the IANA database, "+
			"such as Europe/Berlin or America/New_York", name)
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("the time zone %s: %w", name, err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("the time zone %s: %w", name, err)
	}
	return time.LoadLocationFromTZData(name, data)
}

// Zones returns the names of all time zones, in order.
func Zones() []string { return slices.Sorted(maps.Keys(zoneFiles)) }
