/**
 * The store does not answer, or refuses us: nothing the caller did, and it passes. Requests are answered 503, work of the
 * queue waits. The message is for the log; it never holds a credential.
 */
export class StorageUnavailable extends Error {
  override readonly name = 'StorageUnavailable'
}
