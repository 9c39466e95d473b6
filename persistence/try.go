package persistence

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow"
)

// statusTried is the status of an unpublished version, which has a trial flow of its own. No list
// shows trial flows.
const statusTried = "tried"

// Try compiles a definition as Publish does and stores it as the only version of a trial flow, for
// one task. Published flows and schedules are not changed. Equal keys mean the same trial flow;
// another definition with the same key is a conflict. Key "" is unique.
func Try(ctx context.Context, store Flows, p Publication, key string) (v *Version, warnings definition.Problems, err error) {
	ready, problems, err := Prepare(ctx, store, p)
	switch {
	case err != nil:
		return nil, nil, err
	case ready == nil:
		return nil, nil, problems
	}
	f := Flow{ID: triedID(p.Slug, cmp.Or(key, rand.Text())), Name: cmp.Or(ready.Definition.Name,
		p.Slug, "tried"), Description: ready.Definition.Description, CreatedAt: p.Now, Tried: true}
	if err := f.Check(); err != nil {
		return nil, nil, err
	}
	if err := store.CreateFlow(ctx, f); err != nil && !errors.Is(err, ErrDuplicate) {
		return nil, nil, fmt.Errorf("trying %s: %w", f.ID, err)
	}
	v = &Version{ID: "ver-" + uuid.NewSHA1(versionSpace, []byte(f.ID)).String(), FlowID: f.ID,
		Number: 1, Definition: ready.Text, Status: statusTried, Hash: hashOf(ready.Text), CreatedAt: p.Now}
	err = store.CreateVersion(ctx, *v)
	if errors.Is(err, ErrDuplicate) {
		v, err = sameTry(ctx, store, v)
	}
	return v, problems, err
}

// triedPrefix begins the ids of trial flows. Ids of published flows begin differently.
const triedPrefix = "try-"

// IsTried reports whether the id is that of a trial flow.
func IsTried(id string) bool { return strings.HasPrefix(id, triedPrefix) }

// triedID returns the id of a trial flow, which contains the slug for readability.
func triedID(slug, key string) string {
	sum := sha256.Sum256([]byte(slug + "\n" + key))
	return fmt.Sprintf(triedPrefix+"%s-%s", cmp.Or(slug[:min(len(slug), 64)], "flow"), hex.EncodeToString(sum[:8]))
}

// sameTry returns the existing version with the same key. It returns a conflict if its definition
// differs.
func sameTry(ctx context.Context, store Flows, v *Version) (*Version, error) {
	before, err := store.Version(ctx, v.ID)
	if err == nil && before.Hash != v.Hash {
		return nil, flow.Errorf(flow.Conflict, "another definition was tried with this key before")
	}
	return before, err
}
