/** Builds a text by appending to a string. FIX=1 uses a builder. */
public class Report {
    static String appendRows(int count) {
        String text = "";
        for (int row = 0; row < count; row++) text += "row " + row + "\n";
        return text;
    }
    static String buildRows(int count) {
        StringBuilder text = new StringBuilder();
        for (int row = 0; row < count; row++) text.append("row ").append(row).append("\n");
        return text.toString();
    }
    static long hash(int count) {
        long hash = 7;
        for (long i = 0; i < count * 10000L; i++) hash = hash * 31 + i % 7;
        return hash;
    }
    public static void main(String[] arguments) {
        String text = System.getenv("FIX") != null ? buildRows(40000) : appendRows(40000);
        System.out.println(text.length() + hash(20000));
    }
}
