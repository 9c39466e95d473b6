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

	"github.com/troupe-engine/troupe/flow"
	"github.com/troupe-engine/troupe/flow/compile"
	"github.com/troupe-engine/troupe/flow/define"
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
	Strict                  bool // a warning keeps the definition from being used, too
	// Secret refuses the name of a secret that programs of the member are not given; nil = nobody
	// knows.
	Secret func(name string) error
	// Func returns an error for the name of a function that the member does not have; nil = it is
	// not known.
	Func func(name string) error
	// CheckSlug reports whether the slug is one; nil = CheckSlug.
	CheckSlug func(slug string) error
	// Profile is written into a definition of graph mode that names none; "" =
	// define.ProfileTroupe.
	Profile string
	// Parse reads the definition; nil = define.Parse.
	Parse func([]byte) (*define.Definition, error)
	// After is the number of the newest version that the caller has compared the definition with, 0
	// = there was none. Of those who publish after the same one only one does, ErrOvertaken is for
	// the others. nil = whatever was published before.
	After *int
}

// ErrOvertaken reports that another version has been published since.
var ErrOvertaken = errors.New("persistence: another version has been published")

// Prepared is a definition that can be kept.
type Prepared struct {
	Definition *define.Definition
	Plan       *flow.Plan
	Text       []byte // JSON: as it was given, but for the flows that are put in where their names were, and for what it left unsaid
	Warnings   define.Problems
}

// Prepare compiles a definition as it will be kept: with the newest versions of the flows that it
// embeds by name inside it, and saying what it left unsaid, so that it stays what it is. Everything
// that is wrong with it is told; prepared is nil if there is an error among the problems. It is the
// one way in for every kind of publishing.
func Prepare(ctx context.Context, store Flows, p Publication) (prepared *Prepared, problems define.Problems, err error) {
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

// Sketch is Prepare for who only looks at what a definition means: prepared is nil only when
// nothing can be understood of it. Tasks of it may not begin when there is an error among the
// problems.
func Sketch(ctx context.Context, store Flows, p Publication) (prepared *Prepared, problems define.Problems, err error) {
	prepared, _, problems, err = prepareDefinition(ctx, store, p)
	if prepared != nil && prepared.Plan == nil {
		prepared.Plan = compile.Lower(prepared.Definition, p.Limits)
	}
	return prepared, problems, err
}

// prepareDefinition also tells why the text cannot be kept as JSON.
func prepareDefinition(ctx context.Context, store Flows, p Publication) (prepared *Prepared, unreadable error, problems define.Problems, err error) {
	parse := p.Parse
	if parse == nil {
		parse = define.Parse
	}
	d, err := parse(p.Definition)
	if d == nil {
		return nil, nil, err.(define.Problems), nil
	}
	text, unreadable := asJSON(p.Definition) // the compiler tells that, too
	embedding := define.Embedding{Self: p.Slug, Limits: p.Limits, Lookup: func(name string) ([]byte, error) { return newestOf(ctx, store, name) }}
	if text, err = embedding.Embed(d, text); err != nil {
		return nil, nil, nil, err
	}
	if compile.ModeOf(d) == flow.ModeGraph {
		text = define.WriteProfile(d, text, cmp.Or(p.Profile, define.ProfileTroupe))
	}
	plan, problems := compile.Site{Secret: p.Secret, Func: p.Func}.Definition(d, p.Limits)
	if p.Strict {
		problems = problems.Strict()
	}
	return &Prepared{d, plan, text, problems}, unreadable, problems, nil
}

// hashOf is the same for texts that differ in white space alone, as a definition does that a client
// has read and sends back.
func hashOf(text []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, text) == nil {
		text = b.Bytes()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// newestOf is the newest published definition of a flow, nil when there is none.
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

// Published is what a publication has come to.
type Published struct {
	Version  *Version
	Created  bool            // false: the newest version was the same already
	Warnings define.Problems // and notes
}

// Publish compiles a definition and makes it the newest version of the flow with its slug, which is
// created when there is none. The same definition again is the same version. A definition that does
// not compile is refused with all its problems, as define.Problems. Its schedule, which has the
// slug as its name, is set; one that an earlier version has made and this one does not have is
// deleted.
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

// checkSlug refuses what cannot be a slug where the flow is published.
func (p *Publication) checkSlug() error {
	if p.CheckSlug != nil {
		return p.CheckSlug(p.Slug)
	}
	return CheckSlug(p.Slug)
}

// PublishPrepared publishes what Prepare has made of a publication.
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

// publishTries is how often a publication is tried while others delete the flow.
const publishTries = 3

// storeVersion makes a definition the newest version of its flow. ErrNotFound when the flow is
// deleted meanwhile.
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

// versionID lets one be first: of several who publish the same after the same version, or anything
// after a version that was compared.
func (p *Publication) versionID(flow string, number int, hash string) string {
	if p.After != nil {
		hash = ""
	}
	return "ver-" + uuid.NewSHA1(versionSpace, fmt.Appendf(nil, "%s\n%d\n%s", flow, number, hash)).String()
}

// versionSpace is the name space of ids of versions that were published.
var versionSpace = uuid.MustParse("0b0c8a57-2a7f-5d55-9d9c-2b3a1f7c5e11")

// asJSON is a definition as JSON: byte for byte when it is that already.
func asJSON(text []byte) ([]byte, error) {
	if json.Valid(text) {
		return text, nil
	}
	return define.YAMLToJSON(text)
}

// flowFor finds the flow of a slug or creates it. Of two who create it at once, one finds the
// other's.
func flowFor(ctx context.Context, store Flows, p *Publication, d *define.Definition) (*Flow, error) {
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

// Check refuses a name or description that could not be kept, or is too long to be listed.
func (f *Flow) Check() error {
	return cmp.Or(flow.CheckName("the name of the flow", f.Name), flow.CheckDescription(f.Description))
}
