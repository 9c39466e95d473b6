package tidy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// sourceTree is a checkout of the repository in memory.
type sourceTree struct {
	fset       *token.FileSet
	goFiles    []*goFile
	typeScript []textFile
	documents  []textFile
}

// goFile is a Go file that is not generated.
type goFile struct {
	textFile
	folder string // path of its package from the root of the repository
	test   bool   // the name ends with _test.go
	syntax *ast.File
}

// textFile is a file and its lines.
type textFile struct {
	name  string // path from the root of the repository
	text  string
	lines []string
}

// skippedFolders hold generated or foreign files.
var skippedFolders = map[string]bool{"node_modules": true, "dist": true, "build": true, "testdata": true, "logs": true, ".git": true, "LICENSE": true}

var generatedGo = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// readTree reads the sources and documents below a folder.
func readTree(root string) (*sourceTree, error) {
	t := &sourceTree{fset: token.NewFileSet()}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skippedFolders[d.Name()] {
				return filepath.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		return t.addFile(name, filepath.ToSlash(rel))
	})
	return t, err
}

// addFile reads a file of a measured kind.
func (t *sourceTree) addFile(name, rel string) error {
	extension := path.Ext(rel)
	switch extension {
	case ".go", ".ts", ".tsx", ".md":
	default:
		return nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	file := textFile{rel, string(data), strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")}
	switch {
	case extension == ".md":
		t.documents = append(t.documents, file)
	case extension != ".go":
		if !strings.Contains(rel, ".gen.") && !strings.HasSuffix(rel, "_pb.ts") {
			t.typeScript = append(t.typeScript, file)
		}
	case !generatedGo.MatchString(file.text):
		syntax, err := parser.ParseFile(t.fset, rel, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		t.goFiles = append(t.goFiles, &goFile{file, path.Dir(rel), strings.HasSuffix(rel, "_test.go"), syntax})
	}
	return nil
}
