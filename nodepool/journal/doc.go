// Package journal holds the record of a pool for one process, with its lease and the events of a
// cycle.
//
// The lease is in the record: each write renews it. The holder writes every three seconds, whatever
// its cycles do, by storing the stored record again. Another process takes the lease when it has
// seen the record unchanged for twelve seconds, by its own clock, and the holder stops acting four
// seconds before that. A write that follows another process's write fails, whatever the clocks
// show. After any error of a write the cycle ends, and the next one reads the journal.
package journal
