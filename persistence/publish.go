package persistence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/definition/compile"
	"github.com/troupe-engine/troupe/flow"
)

// slugForm is the form of a slug, the name by which clients address a flow.
var slugForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,127}$`)

// CheckSlug returns an error if the text is not a valid slug.
func CheckSlug(slug string) error {
	if !slugForm.MatchString(slug) {
		return flow.Errorf(flow.Invalid, "slug %.140q is not one: it begins with a letter or "+
			"digit and has up to 128 of a-z, 0-9, '.', '_' and '-'", slug)
	}
	return nil
}

// Publication is a definition to publish as the newest version of a flow.
type Publication struct {
	Slug, Name, Description string
	Definition              []byte // JSON or YAML
	Now                     int64
	Limits                  flow.Limits
	Strict                  bool // treat warnings as errors
	// Secret returns an error if programs of the member do not get the named secret. nil means that
	// the secrets are not known.
	Secret func(name string) error
	// Func returns an error if the member does not have the named function. nil means that the
	// functions are not known.
	Func func(name string) error
	// CheckSlug returns an error for an invalid slug; nil means the function CheckSlug.
	CheckSlug func(slug string) error
	// Profile is written into a graph-mode definition without a profile; "" means
	// definition.ProfileTroupe.
	Profile string
	// Parse parses the definition; nil means definition.Parse.
	Parse func([]byte) (*definition.Definition, error)
	// After is the number of the version with which the caller compared the definition; 0 means no
	// version. Of several publications after the same version, one succeeds and the others get
	// ErrOvertaken. nil publishes after the newest version without a check.
	After *int
}

// ErrOvertaken reports that another version has been published since Publication.After.
var ErrOvertaken = errors.New("persistence: another version has been published")

// Prepared is a checked definition that is ready to store.
type Prepared struct {
	Definition *definition.Definition
	Plan       *flow.Plan
	Text       []byte // JSON as given, with embedded flows and defaults filled in
	Warnings   definition.Problems
}

// Prepare compiles a definition into its stored form. It copies the newest versions of flows that
// are embedded by name and writes out defaults, so that the meaning never changes. It returns all
// problems; prepared is nil if one of them is an error. Every kind of publishing uses Prepare.
func Prepare(ctx context.Context, store Flows, p Publication) (prepared *Prepared, problems definition.Problems, err error) {
	prepared, unreadable, problems, err := prepareDefinition(ctx, store, p)
	switch {
	case err != nil:
		return nil, nil, err
	case problems.Err() != nil:
		return nil, problems, nil
	case unreadable != nil:
		return nil, nil, unreadable
	}
	return prepared, problems, nil
}

// Sketch is like Prepare, for callers that only inspect a definition. prepared is nil only if the
// definition cannot be parsed at all. Tasks of it must not start if the problems contain an error.
func Sketch(ctx context.Context, store Flows, p Publication) (prepared *Prepared, problems definition.Problems, err error) {
	prepared, _, problems, err = prepareDefinition(ctx, store, p)
	if prepared != nil && prepared.Plan == nil {
		prepared.Plan = compile.Lower(prepared.Definition, p.Limits)
	}
	return prepared, problems, err
}

// prepareDefinition does the work of Prepare. unreadable is the reason why the text cannot be
// stored as JSON.
func prepareDefinition(ctx context.Context, store Flows, p Publication) (prepared *Prepared,
	unreadable error, problems definition.Problems, err error) {
	parse := p.Parse
	if parse == nil {
		parse = definition.Parse
	}
	d, err := parse(p.Definition)
	if d == nil {
		return nil, nil, err.(definition.Problems), nil
	}
	text, unreadable := asJSON(p.Definition) // the compiler reports this error, too
	embedding := definition.Embedding{Self: p.Slug, Limits: p.Limits, Lookup: func(name string) ([]byte,
		error) {
		return newestOf(ctx, store, name)
	}}
	if text, err = embedding.Embed(d, text); err != nil {
		return nil, nil, nil, err
	}
	if compile.ModeOf(d) == flow.ModeGraph {
		text = definition.WriteProfile(d, text, cmp.Or(p.Profile, definition.ProfileTroupe))
	}
	plan, problems := compile.Site{Secret: p.Secret, Func: p.Func}.Definition(d, p.Limits)
	if p.Strict {
		problems = problems.Strict()
	}
	return &Prepared{d, plan, text, problems}, unreadable, problems, nil
}

// hashOf returns a hash that is equal for JSON texts that differ only in white space. A client may
// change white space when it reads a definition and sends it back.
func hashOf(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) == nil {
		text = b.Bytes()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// newestOf returns the newest published definition of a flow, or nil if there is none.
func newestOf(ctx context.Context, store Flows, slug string) ([]byte, error) {
	f, err := store.FlowBySlug(ctx, slug)
	var v *Version
	if err == nil {
		v, err = store.FindVersion(ctx, f.ID, 0)
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking for the flow %s: %w", slug, err)
	}
	return v.Definition, nil
}

// Published is the result of a publication.
type Published struct {
	Version  *Version
	Created  bool                // false if the newest version was equal already
	Warnings definition.Problems // warnings and notes
}

// Publish compiles a definition and makes it the newest version of the flow with its slug, creating
// the flow if needed. A definition equal to the newest version is not published again. Problems are
// returned as definition.Problems, and nothing is published. The definition's schedule, which is
// named after the slug, is set. Without a schedule in the definition, a schedule of an earlier
// version is deleted.
func Publish(ctx context.Context, store Library, p Publication) (*Published, error) {
	if err := p.checkSlug(); err != nil {
		return nil, err
	}
	ready, problems, err := Prepare(ctx, store, p)
	switch {
	case err != nil:
		return nil, err
	case ready == nil:
		return nil, problems
	}
	return PublishPrepared(ctx, store, p, ready)
}

// checkSlug returns an error if the slug is not valid for this publication.
func (p *Publication) checkSlug() error {
	if p.CheckSlug != nil {
		return p.CheckSlug(p.Slug)
	}
	return CheckSlug(p.Slug)
}

// PublishPrepared publishes the result of Prepare.
func PublishPrepared(ctx context.Context, store Library, p Publication, ready *Prepared) (*Published, error) {
	if err := p.checkSlug(); err != nil {
		return nil, err
	}
	if err := p.mayBeScheduled(ctx, store, ready.Definition); err != nil {
		return nil, err
	}
	published := &Published{Warnings: ready.Warnings}
	var err error
	for range publishTries {
		published.Version, published.Created, err = p.storeVersion(ctx, store, ready)
		if err == nil {
			err = p.applySchedule(ctx, store, published.Version, ready.Definition)
		}
		if !errors.Is(err, ErrNotFound) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return published, nil
}

// publishTries is the number of tries while the flow is being deleted concurrently.
const publishTries = 3

// storeVersion makes a definition the newest version of its flow. It returns ErrNotFound if the
// flow is deleted meanwhile.
func (p *Publication) storeVersion(ctx context.Context, store Flows, ready *Prepared) (v *Version, created bool, err error) {
	f, err := flowFor(ctx, store, p, ready.Definition)
	if err != nil {
		return nil, false, err
	}
	text := ready.Text
	hash := hashOf(text)
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
	if p.After != nil && number != *p.After {
		return nil, false, ErrOvertaken
	}
	id := p.versionID(f.ID, number, hash)
	err = store.CreateVersion(ctx, Version{ID: id, FlowID: f.ID, Definition: text, Status: "published", Hash: hash, CreatedAt: p.Now})
	if err != nil && !errors.Is(err, ErrDuplicate) {
		return nil, false, fmt.Errorf("publishing %s: %w", p.Slug, err)
	}
	created = err == nil
	if v, err = store.Version(ctx, id); err != nil {
		return nil, false, fmt.Errorf("publishing %s: %w", p.Slug, err)
	}
	if v.Hash != hash {
		return nil, false, ErrOvertaken
	}
	return v, created, nil
}

// versionID returns an id for which only one publication can succeed. The id is equal for equal
// definitions after the same version. With After, it is equal for all definitions after that
// version.
func (p *Publication) versionID(flow string, number int, hash string) string {
	if p.After != nil {
		hash = ""
	}
	return "ver-" + uuid.NewSHA1(versionSpace, fmt.Appendf(nil, "%s\n%d\n%s", flow, number, hash)).String()
}

// versionSpace is the UUID name space of version ids.
var versionSpace = uuid.MustParse("0b0c8a57-2a7f-5d55-9d9c-2b3a1f7c5e11")

// asJSON returns a definition as JSON, byte for byte if it is JSON already.
func asJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	return definition.YAMLToJSON(text)
}

// flowFor finds the flow of a slug or creates it. If another caller creates the flow at the same
// time, it returns that flow.
func flowFor(ctx context.Context, store Flows, p *Publication, d *definition.Definition) (*Flow, error) {
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
	if err := f.Check(); err != nil {
		return nil, err
	}
	err = store.CreateFlow(ctx, *f)
	if errors.Is(err, ErrDuplicate) {
		return store.FlowBySlug(ctx, p.Slug)
	}
	return f, err
}

// Check returns an error if the name or description cannot be stored or is too long for a list.
func (f *Flow) Check() error {
	return cmp.Or(flow.CheckName("the name of the flow", f.Name), flow.CheckDescription(f.Description))
}
