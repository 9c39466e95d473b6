package types

import (
	"regexp"
)

// times are the types of texts that are dates, and what they match: a day, a time of a day without an offset, with one or Z, and
// with Z.
var times = map[string]string{
	"date":          `^` + day + `$`,
	"datetime_notz": `^` + day + clock + `$`,
	"datetime_tz":   `^` + day + clock + `([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])$`,
	"datetime_utc":  `^` + day + clock + `[Zz]$`,
}

const (
	day   = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	clock = `[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?`
)

var timeForms = func() map[string]*regexp.Regexp {
	forms := map[string]*regexp.Regexp{}
	for name, form := range times {
		forms[name] = regexp.MustCompile(form)
	}
	return forms
}()

// IsTime says whether a text is of one of the types date, datetime_notz, datetime_tz and datetime_utc. One that is of the last is of
// the one before, too.
func IsTime(name, text string) bool {
	form := timeForms[name]
	return form != nil && form.MatchString(text)
}
