/** Step of a compiled pattern: takes one such character, or any number of them. */
export interface Step {
  takes(character: string): boolean
  repeats: boolean
}

/** Whether steps take the whole text, at most one comparison per step and character; backtracking may need years. */
export function takesAll(steps: readonly Step[], text: string): boolean {
  let alive = new Int32Array(steps.length + 1)
  let next = new Int32Array(steps.length + 1)
  let count = enter(alive, 0, 0, steps)
  for (let at = 0; at < text.length && count > 0; at++) {
    const character = text.charAt(at)
    let entered = 0
    for (let index = 0; index < count; index++) {
      const position = alive[index] as number
      const step = steps[position]
      if (step?.takes(character)) entered = enter(next, entered, step.repeats ? position : position + 1, steps)
    }
    const spare = alive
    alive = next
    next = spare
    count = entered
  }
  return count > 0 && alive[count - 1] === steps.length
}

/** Adds a position and those after it that need no character, each once, in ascending order. */
function enter(positions: Int32Array, count: number, from: number, steps: readonly Step[]): number {
  const last = count === 0 ? -1 : (positions[count - 1] as number)
  let entered = count
  for (let position = from; position <= steps.length; position++) {
    if (position > last) positions[entered++] = position
    if (!steps[position]?.repeats) break
  }
  return entered
}
