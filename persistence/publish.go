package persistence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/flow"
)

// Slug is what a flow is addressed by.
var slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// CheckSlug refuses what cannot be a slug.
func CheckSlug(slug string) error {
	if !slugForm.MatchString(slug) {
		return flow.Errorf(flow.Invalid, "slug %.140q is not one: it begins with a letter or digit and has up to 128 of a-z, 0-9, '.', '_' and '-'", slug)
	}
	return nil
}

// Publication is a definition on its way to become the newest version of a flow.
type Publication struct {
	Slug, Name, Description string
	Definition              []byte // JSON or YAML
	Now                     int64
	Limits                  flow.Limits
}

// Publish compiles a definition and makes it the newest version of the flow with its slug, which is
// created when there is none. The same definition again is the same version: created is false. A
// definition that does not compile is refused with all its problems (flow.Problems).
func Publish(ctx context.Context, store Flows, p Publication) (v *Version, created bool, err error) {
	if err := CheckSlug(p.Slug); err != nil {
		return nil, false, err
	}
	d, err := flow.ParseDefinition(p.Definition)
	if d == nil {
		return nil, false, err
	}
	if _, problems := flow.Compile(d, p.Limits); problems.Err() != nil {
		return nil, false, problems.Err()
	}
	text, err := asJSON(p.Definition)
	if err != nil {
		return nil, false, err
	}
	f, err := flowFor(ctx, store, p, d)
	if err != nil {
		return nil, false, err
	}
	sum := sha256.Sum256(text)
	hash := hex.EncodeToString(sum[:])
	number := 0
	newest, err := store.FindVersion(ctx, f.ID, 0)
	switch {
	case err == nil && newest.Hash == hash:
		return newest, false, nil
	case err == nil:
		number = newest.Number
	case !errors.Is(err, ErrNotFound):
		return nil, false, fmt.Errorf("looking for the newest version of %s: %w", p.Slug, err)
	}
	// Of several who publish the same after the same version, the id lets one be first.
	id := "ver-" + uuid.NewSHA1(versionSpace, fmt.Appendf(nil, "%s\n%d\n%s", f.ID, number, hash)).String()
	err = store.CreateVersion(ctx, Version{ID: id, FlowID: f.ID, Definition: text, Status: "published", Hash: hash, CreatedAt: p.Now})
	if err != nil && !errors.Is(err, ErrDuplicate) {
		return nil, false, fmt.Errorf("publishing %s: %w", p.Slug, err)
	}
	created = err == nil
	if v, err = store.Version(ctx, id); err != nil {
		return nil, false, fmt.Errorf("publishing %s: %w", p.Slug, err)
	}
	return v, created, nil
}

// versionSpace is the name space of ids of versions that were published.
var versionSpace = uuid.MustParse("0b0c8a57-2a7f-5d55-9d9c-2b3a1f7c5e11")

// asJSON is a definition as JSON: byte for byte when it is that already.
func asJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	return flow.YAMLToJSON(text)
}

// flowFor finds the flow of a slug or creates it. Of two who create it at once, one finds the other's.
func flowFor(ctx context.Context, store Flows, p Publication, d *flow.Definition) (*Flow, error) {
	f, err := store.FlowBySlug(ctx, p.Slug)
	if !errors.Is(err, ErrNotFound) {
		return f, err
	}
	f = &Flow{ID: "flow-" + uuid.Must(uuid.NewV7()).String(), Slug: p.Slug, Name: p.Name, Description: p.Description, CreatedAt: p.Now}
	if f.Name == "" {
		f.Name = d.Name
	}
	if f.Name == "" {
		f.Name = p.Slug
	}
	if f.Description == "" {
		f.Description = d.Description
	}
	err = store.CreateFlow(ctx, *f)
	if errors.Is(err, ErrDuplicate) {
		return store.FlowBySlug(ctx, p.Slug)
	}
	return f, err
}
