import { figureText } from './figure-text.ts'
import type { Machine } from './machine.ts'

/** Bounds of a result; a goal without bounds is never missed. */
export interface Goal {
  atLeast?: number
  atMost?: number
}

export interface BenchRow {
  id: string
  what: string
  against: string
  unit: string
  ours: number
  theirs: number
  compared: 'ratio' | 'difference'
  goal: Goal
}

export interface BenchGrowth {
  title: string
  axis: string
  /** Label of each figure, with its unit. */
  lines: Record<string, string>
  points: { at: number; values: Record<string, number> }[]
}

export interface BenchFigure {
  what: string
  unit: string
  value: number
}

export interface BenchResults {
  service: string
  machine: Machine
  shortenedBy: Record<string, string>
  rows: BenchRow[]
  growth: Record<string, BenchGrowth>
  figures: Record<string, BenchFigure>
}

export function isMet(row: BenchRow): boolean {
  const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = row.goal
  // Compares the printed figure: 0.496 is shown as 0.50 and must meet a goal of 0.50.
  const result = Number(resultText(row).replaceAll(',', ''))
  return result >= atLeast && result <= atMost
}

export const resultText = ({ ours, theirs, compared }: BenchRow) =>
  compared === 'ratio' ? (ours / theirs).toFixed(2) : figureText(ours - theirs)

export function goalText({ atLeast, atMost }: Goal): string {
  if (atLeast !== undefined && atMost !== undefined) return `${atLeast} to ${atMost}`
  if (atLeast !== undefined) return `≥ ${atLeast}`
  return atMost === undefined ? NO_GOAL : `≤ ${atMost}`
}

export function metText(row: BenchRow): string {
  if (goalText(row.goal) === NO_GOAL) return NO_GOAL
  return isMet(row) ? 'yes' : '**no**'
}

const NO_GOAL = '–'
