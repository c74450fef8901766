import { MESSAGE_CHANNELS, MESSAGE_STATES, type MessageFilter } from '../../../core/outbox/messages.store.ts'

/** Reads the filter of a list of messages. `refuse` makes the error for a member that is none of the names. */
export function parseMessageFilter(
  { state, channel }: { state: string | undefined; channel: string | undefined },
  refuse: (member: string, names: readonly string[]) => Error,
): Pick<MessageFilter, 'state' | 'channel'> {
  const oneOf = <Name extends string>(member: string, names: readonly Name[], given: string | undefined) => {
    const name = names.find((each) => each === given)
    if (given !== undefined && name === undefined) throw refuse(member, names)
    return name
  }
  return { state: oneOf('state', MESSAGE_STATES, state), channel: oneOf('channel', MESSAGE_CHANNELS, channel) }
}
