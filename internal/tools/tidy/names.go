package tidy

import (
	"fmt"
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

var oneWord = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// manyPackages is the number of packages from which a one-word name has too many meanings.
const manyPackages = 5

// measureFunctions counts the unexported functions and methods with one-word names, and the names
// among them that several packages use.
func measureFunctions(t *sourceTree) (functions, spread codeMeasure) {
	byFolder := map[string]int{}
	folders := map[string]map[string]bool{} // folders of each name
	total := 0
	for _, f := range t.goFiles {
		if f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || !oneWord.MatchString(fn.Name.Name) || fn.Recv == nil && (fn.Name.Name == "main" || fn.Name.Name == "init") {
				continue
			}
			total++
			byFolder[f.folder]++
			if folders[fn.Name.Name] == nil {
				folders[fn.Name.Name] = map[string]bool{}
			}
			folders[fn.Name.Name][f.folder] = true
		}
	}
	functions = codeMeasure{name: "one-word functions", value: float64(total)}
	for folder, n := range byFolder {
		functions.places = append(functions.places, countedPlace{folder, float64(n)})
	}
	var places []countedPlace
	for name, in := range folders {
		if len(in) >= manyPackages {
			places = append(places, countedPlace{name, float64(len(in))})
		}
	}
	slices.SortFunc(places, func(a, b countedPlace) int { return strings.Compare(a.at, b.at) })
	return functions, countPlaces("function names in five packages or more", places)
}

// measureTypeNames counts the unexported types with one-word names.
func measureTypeNames(t *sourceTree) codeMeasure {
	m := codeMeasure{name: "one-word types"}
	byFolder := map[string]int{}
	for _, f := range t.goFiles {
		if f.test {
			continue
		}
		for _, s := range typeSpecs(f.syntax) {
			if oneWord.MatchString(s.Name.Name) {
				m.value++
				byFolder[f.folder]++
			}
		}
	}
	for folder, n := range byFolder {
		m.places = append(m.places, countedPlace{folder, float64(n)})
	}
	return m
}

// typeSpecs returns the types that a file declares outside of functions.
func typeSpecs(f *ast.File) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, d := range f.Decls {
		if g, ok := d.(*ast.GenDecl); ok {
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					specs = append(specs, ts)
				}
			}
		}
	}
	return specs
}

// measureTypes returns the largest number of methods, and of fields, of a type. The configuration
// of a program may have more fields, because each is an independent setting.
func measureTypes(t *sourceTree) (methods, fields codeMeasure) {
	count := map[string]int{}
	var fieldPlaces []countedPlace
	for _, f := range t.goFiles {
		if f.test {
			continue
		}
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				count[f.folder+"."+receiverName(fn.Recv.List[0].Type)]++
			}
		}
		for _, s := range typeSpecs(f.syntax) {
			st, ok := s.Type.(*ast.StructType)
			if !ok || s.Name.Name == "Config" {
				continue
			}
			fieldPlaces = append(fieldPlaces, countedPlace{f.folder + "." + s.Name.Name, float64(countFields(st))})
		}
	}
	var methodPlaces []countedPlace
	for name, n := range count {
		methodPlaces = append(methodPlaces, countedPlace{name, float64(n)})
	}
	return largestOf("methods of a type", methodPlaces), largestOf("fields of a type", fieldPlaces)
}

func countFields(st *ast.StructType) int {
	n := 0
	for _, f := range st.Fields.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiverName returns the name of a method's type.
func receiverName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiverName(e.X)
	case *ast.IndexExpr:
		return receiverName(e.X)
	case *ast.IndexListExpr:
		return receiverName(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// measurePackages returns the largest number of files in a package, without tests.
func measurePackages(t *sourceTree) codeMeasure {
	count := map[string]int{}
	for _, f := range t.goFiles {
		if !f.test {
			count[f.folder]++
		}
	}
	var places []countedPlace
	for folder, n := range count {
		places = append(places, countedPlace{folder, float64(n)})
	}
	return largestOf("files of a package", places)
}
