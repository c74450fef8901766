/** What a uuid column takes: any other text would fail the query, so that ids of callers are compared with this first. */
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Nobody's id. */
export const NIL_UUID = '00000000-0000-0000-0000-000000000000'
