package dbt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/troupe-engine/troupe/definition"
	"github.com/troupe-engine/troupe/flow/expr"
)

// Manifest is the file, relative to the project, to which dbt writes the contents of a project.
const Manifest = "target/manifest.json"

// maxManifest is the maximum number of bytes that are read of a manifest.
const maxManifest = 256 << 20

// manifestNode is a node of a manifest.
type manifestNode struct {
	Kind    string          `json:"resource_type"`
	Name    string          `json:"name"`
	Path    string          `json:"path"` // relative to the folder where it was found
	File    string          `json:"original_file_path"`
	Package string          `json:"package_name"`
	Version json.RawMessage `json:"version"`
	Needs   struct {
		Nodes []string `json:"nodes"`
	} `json:"depends_on"`
}

// readManifest returns the project that dbt has parsed. It returns nil if there is no manifest, or
// if the manifest is unreadable.
func (r *reader) readManifest(l projectLayout) *Project {
	name := path.Join(r.folder, l.target, "manifest.json")
	file, err := r.files.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	p := &Project{Parsed: true, nodes: map[string]*buildNode{}}
	if err == nil {
		defer file.Close()
		err = eachNode(io.LimitReader(file, maxManifest), func(key string, n *manifestNode) { r.addManifestNode(p, l, key, n, name) })
	}
	if err != nil {
		r.reportError(name, 1, 1, "cannot be read: %s: have dbt parse write it anew, or delete "+
			"it, and the files of the models are read", definition.Reason(err))
	}
	return p
}

// eachNode reads the nodes of a manifest one by one. In a large project, most bytes of the manifest
// are other data.
func eachNode(from io.Reader, each func(key string, n *manifestNode)) error {
	d := json.NewDecoder(from)
	if err := openObject(d); err != nil {
		return err
	}
	for d.More() {
		field, err := d.Token()
		if err != nil {
			return err
		}
		if field == "nodes" {
			return nodesIn(d, each)
		}
		var other json.RawMessage
		if err := d.Decode(&other); err != nil {
			return err
		}
	}
	return errors.New("it has no nodes")
}

func nodesIn(d *json.Decoder, each func(key string, n *manifestNode)) error {
	if err := openObject(d); err != nil {
		return err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var n manifestNode
		if err := d.Decode(&n); err != nil {
			return fmt.Errorf("%v: %w", key, err)
		}
		each(fmt.Sprint(key), &n)
	}
	_, err := d.Token()
	return err
}

func openObject(d *json.Decoder) error {
	t, err := d.Token()
	if err == nil && t != json.Delim('{') {
		err = fmt.Errorf("it has %v where an object begins", t)
	}
	return err
}

// addManifestNode adds a node. Tests and other kinds of nodes are left out, because no model waits
// for them.
func (r *reader) addManifestNode(p *Project, l projectLayout, key string, n *manifestNode, manifest string) {
	switch n.Kind {
	case "model":
		if n.Package != "" && l.name != "" && n.Package != l.name {
			p.addNode(key, nil, n.Needs.Nodes)
			return
		}
		if n.Path == "" {
			r.reportError(manifest, 1, 1, "the model %.140s has no path in it: have dbt parse write it anew", key)
			return
		}
		p.addNode(key, modelOf(n), n.Needs.Nodes)
	case "seed", "snapshot":
		p.addNode(key, nil, n.Needs.Nodes)
	}
}

func modelOf(n *manifestNode) *Model {
	file := strings.ReplaceAll(n.Path, `\`, "/")
	m := &Model{Path: dottedPath(file), File: file, Name: n.Name}
	if m.Name == "" {
		m.Name = nameOf(file)
	}
	// dbt builds all versions of a model that is named without a version
	if v := n.Version; len(v) > 0 && expr.KindOf(v) != expr.KindNull {
		text, isText := expr.String(v)
		if !isText {
			text = string(v)
		}
		m.Name += ".v" + text
	}
	return m
}

// dottedPath returns the path of a model in the form of its task name. nameOf returns the last part
// of that path.
func dottedPath(file string) string {
	return strings.ReplaceAll(strings.TrimSuffix(file, path.Ext(file)), "/", ".")
}

func nameOf(file string) string {
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}
