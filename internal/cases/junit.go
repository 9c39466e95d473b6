package cases

import (
	"encoding/xml"
	"fmt"
	"io"
	"time"
)

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	File    string        `xml:"file,attr"`
	Line    int           `xml:"line,attr"`
	Time    string        `xml:"time,attr"`
	Failure *junitFailure `xml:"failure"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes results in the JUnit XML format for CI systems.
func JUnit(w io.Writer, results []*Result) error {
	all := junitSuites{}
	var total time.Duration
	for _, r := range results {
		if n := len(all.Suites); n == 0 || all.Suites[n-1].Name != r.File.Path {
			all.Suites = append(all.Suites, junitSuite{Name: r.File.Path})
		}
		s := &all.Suites[len(all.Suites)-1]
		c := junitCase{Name: r.Case.Name, Class: r.File.Flow, File: r.File.Path, Line: r.Case.At.Line, Time: secondsText(r.Wall)}
		s.Tests++
		all.Tests++
		total += r.Wall
		if !r.Passed() {
			c.Failure = &junitFailure{r.Failures[0].Text, r.Text("")}
			s.Failures++
			all.Failures++
		}
		s.Cases = append(s.Cases, c)
	}
	for i := range all.Suites {
		s := &all.Suites[i]
		var sum time.Duration
		for _, r := range results {
			if r.File.Path == s.Name {
				sum += r.Wall
			}
		}
		s.Time = secondsText(sum)
	}
	all.Time = secondsText(total)
	b, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, xml.Header+string(b)+"\n")
	return err
}

func secondsText(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
