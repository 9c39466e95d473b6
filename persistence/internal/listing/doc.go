// Package listing is the part of reading tasks that both databases understand alike: the columns of
// a listing, the text of its conditions, and how a row becomes a TaskRow.
package listing
