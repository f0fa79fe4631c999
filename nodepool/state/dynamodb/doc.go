// Package dynamodb keeps the journals of pools in a DynamoDB table, one item for each pool.
//
// The attribute journal is the journal. Beside it an item tells, for other programs and for people,
// what the autoscalers of the seed documents keep there, under their names: scalingInProgress,
// lastScaleEpoch and the fields of an open scale-up or scale-down. Nothing is read back from these
// but where an item has no journal yet: then the pool takes over the cooldown of who wrote it.
// Attributes of other names are left alone. The journal of another pool, or of a pool of another
// cluster, is neither read nor written.
//
// The table is made by others: its partition key is a string, clusterId unless it is said
// otherwise, and it has no sort key.
package dynamodb
