package types

import (
	"regexp"
)

// timePatterns maps the text types for dates to their patterns: a day, a day and time without an
// offset, the same with an offset or Z, and the same with Z.
var timePatterns = map[string]string{
	"date":          `^` + dayPattern + `$`,
	"datetime_notz": `^` + dayPattern + clockPattern + `$`,
	"datetime_tz":   `^` + dayPattern + clockPattern + `([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])$`,
	"datetime_utc":  `^` + dayPattern + clockPattern + `[Zz]$`,
}

const (
	dayPattern   = `[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])`
	clockPattern = `[Tt ]([01][0-9]|2[0-3]):[0-5][0-9]:([0-5][0-9]|60)(\.[0-9]+)?`
)

var timeForms = func() map[string]*regexp.Regexp {
	forms := map[string]*regexp.Regexp{}
	for name, form := range timePatterns {
		forms[name] = regexp.MustCompile(form)
	}
	return forms
}()

// IsTime reports whether a text is valid for the type date, datetime_notz, datetime_tz or
// datetime_utc. Every datetime_utc is also a datetime_tz.
func IsTime(name, text string) bool {
	form := timeForms[name]
	return form != nil && form.MatchString(text)
}
